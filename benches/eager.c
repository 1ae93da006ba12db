/* Tensors, and ops executed one by one. */
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { CALLS = 20000, SHAPES = 2000 };

static void measure_tensors(void) {
    double start = seconds();
    for (int i = 0; i < CALLS; ++i) tf.TF_DeleteTensor(tf.TF_AllocateTensor(TF_FLOAT, NULL, 0, sizeof(float)));
    printf("tensor %.1f ns\n", (seconds() - start) / CALLS * 1e9);
}

static TFE_TensorHandle* call(TFE_Context* context, const char* name, TFE_TensorHandle* a, TFE_TensorHandle* b) {
    TFE_Op* op = tf.TFE_NewOp(context, name, status);
    tf.TFE_OpAddInput(op, a, status);
    if (b) tf.TFE_OpAddInput(op, b, status);
    TFE_TensorHandle* result = NULL;
    int count = 1;
    tf.TFE_Execute(op, &result, &count, status);
    check(name);
    tf.TFE_DeleteOp(op);
    return result;
}

static TFE_TensorHandle* handle_of(TF_Tensor* tensor) {
    TFE_TensorHandle* handle = tf.TFE_NewTensorHandle(tensor, status);
    tf.TF_DeleteTensor(tensor);
    return handle;
}

/* A call with all that belongs to it: making it, its inputs, executing and deleting it, and its output. */
static void measure_calls(const char* figure, TFE_Context* context, const char* name, int n_inputs) {
    TFE_TensorHandle *x = handle_of(scalar(2)), *y = n_inputs > 1 ? x : NULL;
    for (int i = 0; i < 1000; ++i) tf.TFE_DeleteTensorHandle(call(context, name, x, y));
    double start = seconds();
    for (int i = 0; i < CALLS; ++i) tf.TFE_DeleteTensorHandle(call(context, name, x, y));
    printf("%s %.1f ns\n", figure, (seconds() - start) / CALLS * 1e9);
    tf.TFE_DeleteTensorHandle(x);
}

/* Calls with a shape that none before had. */
static void measure_new_shapes(TFE_Context* context) {
    double taken = 0;
    for (int i = 0; i < SHAPES; ++i) {
        const int64_t extent = i + 2;
        size_t size = (size_t)extent * sizeof(float);
        TF_Tensor* tensor = tf.TF_AllocateTensor(TF_FLOAT, &extent, 1, size);
        memset(tf.TF_TensorData(tensor), 0, size);
        TFE_TensorHandle* x = handle_of(tensor);
        double start = seconds();
        tf.TFE_DeleteTensorHandle(call(context, "AddV2", x, x));
        taken += seconds() - start;
        tf.TFE_DeleteTensorHandle(x);
    }
    printf("eager_shape %.1f ns\n", taken / SHAPES * 1e9);
}

void measure_eager(void) {
    measure_tensors();
    TFE_Context* context = tf.TFE_NewContext(tf.TFE_NewContextOptions(), status);
    check("context");
    measure_calls("eager_add", context, "AddV2", 2);
    measure_new_shapes(context);
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Output x = placeholder(graph), y = add(graph, "y", x, x);
    TF_Function* function =
        tf.TF_GraphToFunction(graph, "f", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, status);
    check("function");
    tf.TFE_ContextAddFunction(context, function, status);
    check("function");
    measure_calls("eager_call", context, "f", 1);
}
