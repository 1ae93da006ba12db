#include "eager.h"

#include <stdio.h>
#include <string.h>

#include "build.h"
#include "harness.h"

TFE_Context* context;

void begin_eager(bool is_async) {
    status = TF_NewStatus();
    TFE_ContextOptions* options = TFE_NewContextOptions();
    TFE_ContextOptionsSetAsync(options, is_async);
    context = TFE_NewContext(options, status);
    TFE_DeleteContextOptions(options);
    print_status("context", status);
}

void end_eager(void) {
    TFE_DeleteContext(context);
    TF_DeleteStatus(status);
}

static TFE_TensorHandle* handle_of(TF_Tensor* tensor) {
    TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, status);
    TF_DeleteTensor(tensor);
    return handle;
}

TFE_TensorHandle* floats(int rank, const int64_t* dims) {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, rank, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; ++i) ((float*)TF_TensorData(tensor))[i] = (float)(i + 1);
    return handle_of(tensor);
}

TFE_TensorHandle* vector(int64_t count) { return floats(1, &count); }

TFE_TensorHandle* number(float value) { return handle_of(float_scalar(value)); }

TFE_TensorHandle* of_type(TF_DataType type, int64_t count) {
    TF_Tensor* tensor = TF_AllocateTensor(type, &count, 1, (size_t)count * TF_DataTypeSize(type));
    memset(TF_TensorData(tensor), 0, TF_TensorByteSize(tensor));
    return handle_of(tensor);
}

TFE_Op* new_op(const char* name, TFE_TensorHandle* a, TFE_TensorHandle* b) {
    TFE_Op* op = TFE_NewOp(context, name, fresh(status));
    if (!op) return NULL;
    if (a) TFE_OpAddInput(op, a, status);
    if (b) TFE_OpAddInput(op, b, status);
    return op;
}

void print_handle(const char* what, TFE_TensorHandle* handle) {
    if (!handle) {
        printf("%s: no handle\n", what);
        return;
    }
    TF_DataType type = TFE_TensorHandleDataType(handle);
    if (type == TF_RESOURCE || type == TF_VARIANT) return;
    TF_Tensor* tensor = TFE_TensorHandleResolve(handle, fresh(status));
    if (TF_GetCode(status) != TF_OK) print_status(what, status);
    print_tensor(what, tensor);
    TF_DeleteTensor(tensor);
}

static TFE_TensorHandle* run_op(const char* what, TFE_Op* op, bool print) {
    TFE_TensorHandle* outputs[4] = {NULL, NULL, NULL, NULL};
    int count = 4;
    TFE_Execute(op, outputs, &count, fresh(status));
    if (print || TF_GetCode(status) != TF_OK) print_status(what, status);
    bool good = TF_GetCode(status) == TF_OK;
    TFE_DeleteOp(op);
    if (!good) return NULL;
    if (print) printf("%s: %d outputs\n", what, count);
    for (int i = 0; i < count; ++i) {
        if (print) print_handle(what, outputs[i]);
        if (i > 0) TFE_DeleteTensorHandle(outputs[i]);
    }
    return count > 0 ? outputs[0] : NULL;
}

TFE_TensorHandle* execute(const char* what, TFE_Op* op) { return run_op(what, op, true); }

TFE_TensorHandle* execute_quietly(const char* what, TFE_Op* op) { return run_op(what, op, false); }
