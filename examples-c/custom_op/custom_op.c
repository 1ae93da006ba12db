/* A shared library that adds ops: what TF_LoadLibrary loads. It runs on this library and on TensorFlow's own as it is.
 *
 *   ExampleSmooth(x: T, factor: float) -> y: T
 *       y[i] = factor * y[i - 1] + (1 - factor) * x[i] along a vector; it writes over its input where it may.
 *   ExampleWait(x: float, milliseconds: int) -> y: float
 *       x, some time later. While it waits it holds no thread of the library's: its kernel is asynchronous.
 *
 * An op is a definition with a shape function; kernels follow for a type of device and of elements. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>
#include <time.h>

/* The output has the input's shape. Of ExampleSmooth it must be a vector. */
static void shape_of_smooth(TF_ShapeInferenceContext* context, TF_Status* status) {
    TF_ShapeHandle* shape = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, shape, status);
    if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextWithRank(context, shape, 1, shape, status);
    if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(context, 0, shape, status);
    TF_DeleteShapeHandle(shape);
}

static void shape_of_wait(TF_ShapeInferenceContext* context, TF_Status* status) {
    TF_ShapeHandle* shape = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, shape, status);
    if (TF_GetCode(status) == TF_OK) TF_ShapeInferenceContextSetOutput(context, 0, shape, status);
    TF_DeleteShapeHandle(shape);
}

/* What a node keeps of its attributes. */
typedef struct {
    float factor;
    int64_t milliseconds;
} State;

static void* create_smooth(TF_OpKernelConstruction* construction) {
    State* state = calloc(1, sizeof(State));
    TF_Status* status = TF_NewStatus();
    TF_OpKernelConstruction_GetAttrFloat(construction, "factor", &state->factor, status);
    if (TF_GetCode(status) == TF_OK && !(state->factor >= 0 && state->factor < 1))
        TF_SetStatus(status, TF_INVALID_ARGUMENT, "factor must be at least 0 and below 1");
    if (TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(construction, status);
    TF_DeleteStatus(status);
    return state;
}

static void* create_wait(TF_OpKernelConstruction* construction) {
    State* state = calloc(1, sizeof(State));
    TF_Status* status = TF_NewStatus();
    TF_OpKernelConstruction_GetAttrInt64(construction, "milliseconds", &state->milliseconds, status);
    if (TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(construction, status);
    TF_DeleteStatus(status);
    return state;
}

static void delete_state(void* state) { free(state); }

/* Computes in double, whatever the elements are. */
#define SMOOTH(TYPE)                                                     \
    static void smooth_##TYPE(const TYPE* x, TYPE* y, int64_t n, double factor) { \
        double value = 0;                                                \
        for (int64_t i = 0; i < n; ++i) {                                \
            value = factor * value + (1 - factor) * (double)x[i];        \
            y[i] = (TYPE)value;                                          \
        }                                                                \
    }
SMOOTH(float)
SMOOTH(double)

static void compute_smooth(void* kernel, TF_OpKernelContext* context) {
    const State* state = kernel;
    TF_Status* status = TF_NewStatus();
    TF_Tensor *input = NULL, *output = NULL;
    TF_GetInput(context, 0, &input, status);
    if (TF_GetCode(status) == TF_OK) {
        const int candidates[] = {0};
        int64_t count = TF_TensorElementCount(input);
        output = TF_ForwardInputOrAllocateOutput(context, candidates, 1, 0, &count, 1, NULL, status);
        if (TF_GetCode(status) == TF_OK && TF_TensorType(input) == TF_FLOAT)
            smooth_float(TF_TensorData(input), TF_TensorData(output), count, state->factor);
        else if (TF_GetCode(status) == TF_OK)
            smooth_double(TF_TensorData(input), TF_TensorData(output), count, state->factor);
    }
    if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
    TF_DeleteTensor(output);
    TF_DeleteTensor(input);
    TF_DeleteStatus(status);
}

/* A wait under way: all of it lives until `done` is called. */
typedef struct {
    int64_t milliseconds;
    TF_OpKernelContext* context;
    TF_AsyncOpKernelDoneCallback* done;
} Wait;

static void* wait_and_finish(void* argument) {
    Wait* wait = argument;
    struct timespec time = {wait->milliseconds / 1000, wait->milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
    TF_Status* status = TF_NewStatus();
    TF_Tensor* input = NULL;
    TF_GetInput(wait->context, 0, &input, status);
    if (TF_GetCode(status) == TF_OK) TF_SetOutput(wait->context, 0, input, status);
    if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(wait->context, status);
    TF_DeleteTensor(input);
    TF_DeleteStatus(status);
    TF_RunAsyncOpKernelDoneCallback(wait->done);
    free(wait);
    return NULL;
}

static void compute_wait(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
    Wait* wait = malloc(sizeof(Wait));
    wait->milliseconds = ((State*)kernel)->milliseconds;
    wait->context = context;
    wait->done = done;
    pthread_t thread;
    pthread_create(&thread, NULL, wait_and_finish, wait);
    pthread_detach(thread);
}

static void register_smooth(TF_Status* status) {
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("ExampleSmooth");
    TF_OpDefinitionBuilderAddAttr(op, "T: {float, double}");
    TF_OpDefinitionBuilderAddAttr(op, "factor: float = 0.5");
    TF_OpDefinitionBuilderAddInput(op, "x: T");
    TF_OpDefinitionBuilderAddOutput(op, "y: T");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shape_of_smooth);
    TF_RegisterOpDefinition(op, status);
    static const TF_DataType TYPES[] = {TF_FLOAT, TF_DOUBLE};
    for (int i = 0; i < 2 && TF_GetCode(status) == TF_OK; ++i) {
        TF_KernelBuilder* kernel =
            TF_NewKernelBuilder("ExampleSmooth", "CPU", create_smooth, compute_smooth, delete_state);
        TF_KernelBuilder_TypeConstraint(kernel, "T", TYPES[i], status);
        TF_RegisterKernelBuilder("ExampleSmooth", kernel, status);
    }
}

static void register_wait(TF_Status* status) {
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("ExampleWait");
    TF_OpDefinitionBuilderAddAttr(op, "milliseconds: int = 1");
    TF_OpDefinitionBuilderAddInput(op, "x: float");
    TF_OpDefinitionBuilderAddOutput(op, "y: float");
    TF_OpDefinitionBuilderSetIsStateful(op, true);
    TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shape_of_wait);
    TF_RegisterOpDefinition(op, status);
    TF_KernelBuilder* kernel = TF_NewAsyncKernelBuilder("ExampleWait", "CPU", create_wait, compute_wait, delete_state);
    TF_RegisterKernelBuilder("ExampleWait", kernel, status);
}

/* Runs when the library is loaded. */
__attribute__((constructor)) static void register_ops(void) {
    TF_Status* status = TF_NewStatus();
    register_smooth(status);
    register_wait(status);
    TF_DeleteStatus(status);
}
