/* Short ways to build graphs and to run them in tests. Unless said otherwise a failure is printed and gives a NULL
 * operation. */
#ifndef CAPI_TESTS_HARNESS_BUILD_H_
#define CAPI_TESTS_HARNESS_BUILD_H_

#include <stdint.h>
#include <tensorflow/c/c_api.h>

/* Finishes an operation; prints the status only when it is not OK. */
TF_Output finish(TF_OperationDescription* description);

/* Finishes an operation and prints "name: STATUS" in any case. */
TF_Output finish_and_print(TF_OperationDescription* description, const char* name);

TF_Output placeholder(TF_Graph* graph, const char* name, TF_DataType type);
/* `rank` -1 is an unknown shape. */
TF_Output shaped_placeholder(TF_Graph* graph, const char* name, TF_DataType type, int rank, const int64_t* dims);
/* Consumes the tensor. */
TF_Output constant(TF_Graph* graph, const char* name, TF_Tensor* value);
TF_Output float_constant(TF_Graph* graph, const char* name, float value);
TF_Output int_constant(TF_Graph* graph, const char* name, int32_t value);
TF_Output unary(TF_Graph* graph, const char* op, const char* name, TF_Output input);
TF_Output binary(TF_Graph* graph, const char* op, const char* name, TF_Output a, TF_Output b);
TF_Operation* no_op(TF_Graph* graph, const char* name);

/* New tensors; the caller deletes them. */
TF_Tensor* tensor_of(TF_DataType type, int rank, const int64_t* dims, const void* data);
TF_Tensor* float_scalar(float value);
TF_Tensor* int_scalar(int32_t value);
TF_Tensor* float_vector(int64_t count, const float* values);
TF_Tensor* int_vector(int64_t count, const int32_t* values);
TF_Tensor* string_scalar(const char* text);
TF_Tensor* string_vector(int64_t count, const char* const* texts);

/* A session with default options; NULL when that fails. */
TF_Session* new_session(TF_Graph* graph);
void delete_session(TF_Session* session);

/* Runs with at most one feed (deleted here), one fetch and one target; prints the status and the result. */
void run_and_print(const char* what, TF_Session* session, TF_Output input, TF_Tensor* feed, TF_Output output,
                   const TF_Operation* target);

/* No output, for the arguments above. */
extern const TF_Output NOTHING;

/* Exports a graph; the caller deletes the buffer. */
TF_Buffer* exported(TF_Graph* graph);

#endif
