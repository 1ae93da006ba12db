/* Small helpers that the examples share: stop on an error, read a file, find tensors by name.
 *
 * They keep each example about its subject; a real program would return errors instead of exiting. */
#ifndef EXAMPLES_C_COMMON_EXAMPLE_H_
#define EXAMPLES_C_COMMON_EXAMPLE_H_

#include <stddef.h>
#include <stdint.h>
#include <tensorflow/c/c_api.h>

/* Prints `what` with the status's message and exits with 1 unless the status is OK. */
void check(const char* what, const TF_Status* status);

/* Prints a printf-style message and exits with 1. */
void fail(const char* format, ...);

/* Reads a whole file; the caller deletes the buffer. Exits when the file cannot be read. */
TF_Buffer* read_file(const char* path);

/* Imports a serialized GraphDef from a file; the caller deletes the graph. */
TF_Graph* import_graph(const char* path);

/* Returns the output that "name" or "name:index" denotes; exits when the graph has no such operation. */
TF_Output find_output(TF_Graph* graph, const char* tensor_name);

/* Returns the operation of that name; exits when the graph has none. */
TF_Operation* find_operation(TF_Graph* graph, const char* name);

/* Returns a new tensor with a copy of `data`, which holds as many elements as `dims` says. */
TF_Tensor* new_tensor(TF_DataType type, int rank, const int64_t* dims, const void* data);

/* Returns a new scalar string tensor. */
TF_Tensor* new_string_scalar(const char* text);

/* Runs one step: feeds `n_inputs` tensors, fetches `n_outputs` (the caller deletes them), runs `target` if not NULL. */
void run(TF_Session* session, int n_inputs, const TF_Output* inputs, TF_Tensor* const* feeds, int n_outputs,
         const TF_Output* outputs, TF_Tensor** results, const TF_Operation* target);

#endif
