#include "build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

const TF_Output NOTHING = {NULL, 0};

TF_Output finish(TF_OperationDescription* description) {
    TF_Status* status = TF_NewStatus();
    TF_Output output = {TF_FinishOperation(description, status), 0};
    if (TF_GetCode(status) != TF_OK) print_status("finish", status);
    TF_DeleteStatus(status);
    return output;
}

TF_Output finish_and_print(TF_OperationDescription* description, const char* name) {
    TF_Status* status = TF_NewStatus();
    TF_Output output = {TF_FinishOperation(description, status), 0};
    print_status(name, status);
    if ((TF_GetCode(status) == TF_OK) != (output.oper != NULL)) printf("operation and status disagree\n");
    TF_DeleteStatus(status);
    return output;
}

TF_Output placeholder(TF_Graph* graph, const char* name, TF_DataType type) {
    TF_OperationDescription* description = TF_NewOperation(graph, "Placeholder", name);
    TF_SetAttrType(description, "dtype", type);
    return finish(description);
}

TF_Output shaped_placeholder(TF_Graph* graph, const char* name, TF_DataType type, int rank, const int64_t* dims) {
    TF_OperationDescription* description = TF_NewOperation(graph, "Placeholder", name);
    TF_SetAttrType(description, "dtype", type);
    TF_SetAttrShape(description, "shape", dims, rank);
    return finish(description);
}

TF_Output constant(TF_Graph* graph, const char* name, TF_Tensor* value) {
    TF_Status* status = TF_NewStatus();
    TF_OperationDescription* description = TF_NewOperation(graph, "Const", name);
    TF_SetAttrTensor(description, "value", value, status);
    if (TF_GetCode(status) != TF_OK) print_status("value", status);
    TF_SetAttrType(description, "dtype", TF_TensorType(value));
    TF_DeleteTensor(value);
    TF_DeleteStatus(status);
    return finish(description);
}

TF_Output float_constant(TF_Graph* graph, const char* name, float value) {
    return constant(graph, name, float_scalar(value));
}

TF_Output int_constant(TF_Graph* graph, const char* name, int32_t value) {
    return constant(graph, name, int_scalar(value));
}

TF_Output unary(TF_Graph* graph, const char* op, const char* name, TF_Output input) {
    TF_OperationDescription* description = TF_NewOperation(graph, op, name);
    TF_AddInput(description, input);
    return finish(description);
}

TF_Output binary(TF_Graph* graph, const char* op, const char* name, TF_Output a, TF_Output b) {
    TF_OperationDescription* description = TF_NewOperation(graph, op, name);
    TF_AddInput(description, a);
    TF_AddInput(description, b);
    return finish(description);
}

TF_Operation* no_op(TF_Graph* graph, const char* name) { return finish(TF_NewOperation(graph, "NoOp", name)).oper; }

TF_Tensor* tensor_of(TF_DataType type, int rank, const int64_t* dims, const void* data) {
    size_t length = TF_DataTypeSize(type);
    for (int i = 0; i < rank; ++i) length *= (size_t)dims[i];
    TF_Tensor* tensor = TF_AllocateTensor(type, dims, rank, length);
    if (tensor && length > 0) memcpy(TF_TensorData(tensor), data, length);
    return tensor;
}

TF_Tensor* float_scalar(float value) { return tensor_of(TF_FLOAT, 0, NULL, &value); }

TF_Tensor* int_scalar(int32_t value) { return tensor_of(TF_INT32, 0, NULL, &value); }

TF_Tensor* float_vector(int64_t count, const float* values) { return tensor_of(TF_FLOAT, 1, &count, values); }

TF_Tensor* int_vector(int64_t count, const int32_t* values) { return tensor_of(TF_INT32, 1, &count, values); }

static TF_Tensor* strings_of(int rank, int64_t count, const char* const* texts) {
    TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, &count, rank, (size_t)count * sizeof(TF_TString));
    for (int64_t i = 0; i < count; ++i) {
        TF_TString* element = (TF_TString*)TF_TensorData(tensor) + i;
        TF_StringInit(element);
        TF_StringCopy(element, texts[i], strlen(texts[i]));
    }
    return tensor;
}

TF_Tensor* string_scalar(const char* text) { return strings_of(0, 1, &text); }

TF_Tensor* string_vector(int64_t count, const char* const* texts) { return strings_of(1, count, texts); }

TF_Session* new_session(TF_Graph* graph) {
    TF_Status* status = TF_NewStatus();
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_NewSession(graph, options, status);
    if (TF_GetCode(status) != TF_OK) print_status("session", status);
    TF_DeleteSessionOptions(options);
    TF_DeleteStatus(status);
    return session;
}

void delete_session(TF_Session* session) {
    TF_Status* status = TF_NewStatus();
    TF_DeleteSession(session, status);
    if (TF_GetCode(status) != TF_OK) print_status("delete session", status);
    TF_DeleteStatus(status);
}

void run_and_print(const char* what, TF_Session* session, TF_Output input, TF_Tensor* feed, TF_Output output,
                   const TF_Operation* target) {
    TF_Status* status = TF_NewStatus();
    TF_Tensor* result = NULL;
    TF_SessionRun(session, NULL, &input, &feed, feed ? 1 : 0, &output, &result, output.oper ? 1 : 0, &target,
                  target ? 1 : 0, NULL, status);
    print_status(what, status);
    if (result) print_tensor(what, result);
    TF_DeleteTensor(result);
    TF_DeleteTensor(feed);
    TF_DeleteStatus(status);
}

TF_Buffer* exported(TF_Graph* graph) {
    TF_Status* status = TF_NewStatus();
    TF_Buffer* buffer = TF_NewBuffer();
    TF_GraphToGraphDef(graph, buffer, status);
    if (TF_GetCode(status) != TF_OK) print_status("export", status);
    TF_DeleteStatus(status);
    return buffer;
}
