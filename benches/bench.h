/* What the parts of the benchmark share: the library that is measured, and graphs to measure it with. */
#ifndef FERROFLOW_BENCH_H_
#define FERROFLOW_BENCH_H_

#include <tensorflow/c/c_api.h>
#include <tensorflow/c/eager/c_api.h>

/* The functions that are measured or needed on the way. */
/* clang-format off */
#define FUNCTIONS(X)                                                                                              \
    X(TF_NewStatus) X(TF_GetCode) X(TF_Message) X(TF_NewBuffer) X(TF_DeleteBuffer) X(TF_AllocateTensor)            \
    X(TF_DeleteTensor) X(TF_TensorData) X(TF_NewGraph) X(TF_DeleteGraph) X(TF_NewOperation) X(TF_FinishOperation)  \
    X(TF_AddInput) X(TF_SetAttrType) X(TF_SetAttrTensor) X(TF_GraphToGraphDef) X(TF_NewImportGraphDefOptions)      \
    X(TF_DeleteImportGraphDefOptions) X(TF_GraphImportGraphDef) X(TF_GraphOperationByName) X(TF_NewSessionOptions) \
    X(TF_DeleteSessionOptions) X(TF_NewSession) X(TF_DeleteSession) X(TF_SessionRun)                         \
    X(TF_AddControlInput) X(TF_SetAttrBool) X(TF_SetAttrTypeList) X(TF_SetAttrFuncName)       \
    X(TF_SetDevice) X(TF_SetConfig) X(TF_AddInputList) X(TF_NewWhile) X(TF_FinishWhile) X(TF_GraphToFunction)          \
    X(TF_GraphCopyFunction) X(TF_DeleteFunction) X(TFE_NewContextOptions) X(TFE_NewContext)                        \
    X(TFE_ContextAddFunction) X(TFE_NewTensorHandle) X(TFE_DeleteTensorHandle) X(TFE_NewOp) X(TFE_OpAddInput)      \
    X(TFE_Execute) X(TFE_DeleteOp)
/* clang-format on */

struct library {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct library tf;

extern TF_Status* status;

/* Seconds of a clock that only goes forward. */
double seconds(void);
/* Ends the program with a message when the last call failed. */
void check(const char* what);
/* A number of megabytes from /proc/self/status. */
double process_megabytes(const char* field);
/* Adds the operation; returns its first output. */
TF_Output finish(TF_OperationDescription* description);
TF_Tensor* scalar(float value);
TF_Output placeholder(TF_Graph* graph);
TF_Output add(TF_Graph* graph, const char* name, TF_Output a, TF_Output b);
/* x + x + x + ...; returns the last sum. */
TF_Output chain(TF_Graph* graph, int length);

/* Tensors, and ops executed one by one. */
void measure_eager(void);
/* Loops, queues, transfers, branches, sessions. */
void measure_executor(void);

#endif
