/* Ops executed one by one: contexts, handles, attributes, functions, state, errors. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/eager/c_api.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"

static TFE_Context* context;

static void begin(void) {
    status = TF_NewStatus();
    TFE_ContextOptions* options = TFE_NewContextOptions();
    context = TFE_NewContext(options, status);
    TFE_DeleteContextOptions(options);
    print_status("context", status);
}

static void end(void) {
    TFE_DeleteContext(context);
    TF_DeleteStatus(status);
}

/* A handle of a tensor of floats 1, 2, 3, ... */
static TFE_TensorHandle* floats(int rank, const int64_t* dims) {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= dims[i];
    TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, rank, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; ++i) ((float*)TF_TensorData(tensor))[i] = (float)(i + 1);
    TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, status);
    TF_DeleteTensor(tensor);
    return handle;
}

static TFE_TensorHandle* vector(int64_t count) { return floats(1, &count); }

static TFE_TensorHandle* number(float value) {
    TF_Tensor* tensor = float_scalar(value);
    TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, status);
    TF_DeleteTensor(tensor);
    return handle;
}

static TFE_TensorHandle* of_type(TF_DataType type, int64_t count) {
    TF_Tensor* tensor = TF_AllocateTensor(type, &count, 1, (size_t)count * TF_DataTypeSize(type));
    memset(TF_TensorData(tensor), 0, TF_TensorByteSize(tensor));
    TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, status);
    TF_DeleteTensor(tensor);
    return handle;
}

static TFE_Op* new_op(const char* name, TFE_TensorHandle* a, TFE_TensorHandle* b) {
    TFE_Op* op = TFE_NewOp(context, name, fresh(status));
    if (!op) return NULL;
    if (a) TFE_OpAddInput(op, a, status);
    if (b) TFE_OpAddInput(op, b, status);
    return op;
}

/* Executes, prints and deletes; returns the first output. */
static TFE_TensorHandle* execute(const char* what, TFE_Op* op) {
    TFE_TensorHandle* outputs[4] = {NULL, NULL, NULL, NULL};
    int count = 4;
    TFE_Execute(op, outputs, &count, fresh(status));
    print_status(what, status);
    TFE_DeleteOp(op);
    if (TF_GetCode(status) != TF_OK) return NULL;
    printf("%s: %d outputs\n", what, count);
    for (int i = 0; i < count; ++i) {
        TF_DataType type = TFE_TensorHandleDataType(outputs[i]);
        if (type != TF_RESOURCE && type != TF_VARIANT) {
            TF_Tensor* tensor = TFE_TensorHandleResolve(outputs[i], status);
            print_tensor(what, tensor);
            TF_DeleteTensor(tensor);
        }
        if (i > 0) TFE_DeleteTensorHandle(outputs[i]);
    }
    return count > 0 ? outputs[0] : NULL;
}

static void arithmetic(void) {
    begin();
    TFE_TensorHandle *x = vector(3), *y = number(2);
    TFE_TensorHandle* sum = execute("add", new_op("AddV2", x, y));
    TFE_TensorHandle* product = execute("mul", new_op("Mul", sum, sum));
    TFE_DeleteTensorHandle(sum);
    execute("exp", new_op("Exp", y, NULL));
    TFE_Op* op = new_op("MatMul", NULL, NULL);
    const int64_t dims[] = {2, 3};
    TFE_TensorHandle* matrix = floats(2, dims);
    TFE_OpAddInput(op, matrix, status);
    TFE_OpAddInput(op, matrix, status);
    TFE_OpSetAttrBool(op, "transpose_b", 1);
    execute("matmul", op);
    execute("no outputs", new_op("NoOp", NULL, NULL));
    TFE_DeleteTensorHandle(product);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(y);
    end();
}

static void handles(void) {
    begin();
    const int64_t dims[] = {2, 3};
    TFE_TensorHandle* handle = floats(2, dims);
    printf("type %d, rank %d, elements %lld\n", TFE_TensorHandleDataType(handle), TFE_TensorHandleNumDims(handle, status),
           (long long)TFE_TensorHandleNumElements(handle, status));
    printf("dims %lld %lld\n", (long long)TFE_TensorHandleDim(handle, 0, status),
           (long long)TFE_TensorHandleDim(handle, 1, status));
    printf("device %s, backed by %s\n", TFE_TensorHandleDeviceName(handle, status),
           TFE_TensorHandleBackingDeviceName(handle, status));
    TFE_TensorHandle* second = TFE_TensorHandleCopySharingTensor(handle, status);
    TFE_DeleteTensorHandle(handle);
    TF_Tensor* tensor = TFE_TensorHandleResolve(second, status);
    print_tensor("shared", tensor);
    TF_DeleteTensor(tensor);
    TFE_TensorHandle* copy = TFE_TensorHandleCopyToDevice(second, context, "CPU:0", status);
    print_status("copy", status);
    TFE_DeleteTensorHandle(second);
    tensor = TFE_TensorHandleResolve(copy, status);
    print_tensor("copied", tensor);
    TF_DeleteTensor(tensor);
    TFE_TensorDebugInfo* info = TFE_TensorHandleTensorDebugInfo(copy, status);
    print_status("debug info", status);
    printf("on the device: %d dimensions, %lld\n", TFE_TensorDebugInfoOnDeviceNumDims(info),
           (long long)TFE_TensorDebugInfoOnDeviceDim(info, 1));
    TFE_DeleteTensorDebugInfo(info);
    printf("nowhere: %d", TFE_TensorHandleCopyToDevice(copy, context, "nodev", status) != NULL);
    print_status("", status);
    TFE_DeleteTensorHandle(copy);
    end();
}

static void devices(void) {
    begin();
    TF_DeviceList* list = TFE_ContextListDevices(context, status);
    printf("%d devices\n", TF_DeviceListCount(list));
    printf("%s %s\n", TF_DeviceListName(list, 0, status), TF_DeviceListType(list, 0, status));
    TF_DeleteDeviceList(list);
    printf("policy %d\n", TFE_ContextGetDevicePlacementPolicy(context));
    TFE_ContextSetThreadLocalDevicePlacementPolicy(context, TFE_DEVICE_PLACEMENT_EXPLICIT);
    printf("policy %d\n", TFE_ContextGetDevicePlacementPolicy(context));
    TFE_TensorHandle* x = vector(2);
    TFE_Op* op = new_op("AddV2", x, x);
    printf("device [%s]\n", TFE_OpGetDevice(op, status));
    TFE_OpSetDevice(op, "/device:CPU:0", status);
    print_status("set device", status);
    execute("on the CPU", op);
    op = new_op("AddV2", x, x);
    TFE_OpSetDevice(op, "/device:GPU:0", status);
    print_status("set device", status);
    execute("on no GPU", op);
    op = new_op("AddV2", x, x);
    TFE_OpSetDevice(op, "foo bar", status);
    print_code("set device", status);
    execute("where it was", op);
    TFE_DeleteTensorHandle(x);
    end();
}

static void attributes(void) {
    begin();
    TFE_TensorHandle* x = vector(4);
    TFE_Op* op = new_op("Cast", x, NULL);
    TFE_OpSetAttrType(op, "DstT", TF_INT32);
    execute("type", op);
    op = new_op("Squeeze", NULL, NULL);
    const int64_t dims[] = {1, 2, 1};
    TFE_TensorHandle* y = floats(3, dims);
    TFE_OpAddInput(op, y, status);
    const int64_t axes[] = {0};
    TFE_OpSetAttrIntList(op, "squeeze_dims", axes, 1);
    execute("list of ints", op);
    op = new_op("Placeholder", NULL, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpSetAttrShape(op, "shape", dims, 3, status);
    print_status("shape", status);
    execute("placeholder", op);
    op = new_op("Const", NULL, NULL);
    TF_Tensor* value = float_scalar(7);
    TFE_OpSetAttrTensor(op, "value", value, status);
    print_status("tensor", status);
    TF_DeleteTensor(value);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    execute("tensor", op);
    op = new_op("LeakyRelu", x, NULL);
    TFE_OpSetAttrFloat(op, "alpha", 0.5f);
    execute("float", op);
    op = new_op("Pack", NULL, NULL);
    TFE_TensorHandle* list[] = {x, x, x};
    TFE_OpAddInputList(op, list, 3, status);
    print_status("list of inputs", status);
    TFE_OpSetAttrInt(op, "axis", 1);
    printf("%d inputs, the list has %d\n", TFE_OpGetFlatInputCount(op, status),
           TFE_OpGetInputLength(op, "values", status));
    printf("the second has %lld elements\n",
           (long long)TFE_TensorHandleNumElements(TFE_OpGetFlatInput(op, 1, status), status));
    execute("pack", op);
    op = new_op("IdentityN", NULL, NULL);
    TFE_OpAddInputList(op, list, 2, status);
    printf("output has %d\n", TFE_OpGetOutputLength(op, "output", status));
    execute("list of types", op);
    op = new_op("MatMul", NULL, NULL);
    TFE_OpSetAttrInt(op, "transpose_a", 1);
    TFE_OpAddInput(op, x, status);
    TFE_OpAddInput(op, x, status);
    int count = 1;
    TFE_TensorHandle* output;
    TFE_Execute(op, &output, &count, fresh(status));
    print_code("of the wrong kind", status);
    TFE_DeleteOp(op);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(y);
    end();
}

static void attribute_kinds(void) {
    begin();
    static const struct {
        const char *op, *attr;
    } ROWS[] = {{"MatMul", "transpose_a"}, {"Cast", "DstT"},     {"Conv2D", "strides"}, {"Conv2D", "padding"},
                {"Const", "value"},        {"Placeholder", "shape"}, {"If", "then_branch"}, {"Case", "branches"},
                {"LeakyRelu", "alpha"},    {"If", "Tin"},         {"QueueEnqueueV2", "Tcomponents"}};
    for (int i = 0; i < N_ELEMENTS(ROWS); ++i) {
        unsigned char is_list = 7;
        int kind = TFE_OpNameGetAttrType(context, ROWS[i].op, ROWS[i].attr, &is_list, fresh(status));
        printf("%s.%s: %d %d\n", ROWS[i].op, ROWS[i].attr, kind, is_list);
    }
    unsigned char is_list = 0;
    TFE_Op* op = new_op("MatMul", NULL, NULL);
    TFE_OpGetAttrType(op, "nope", &is_list, status);
    print_status("no attribute", status);
    printf("%s\n", TFE_OpGetName(op, status));
    printf("the same context: %d\n", TFE_OpGetContext(op, status) == context);
    printf("lengths %d", TFE_OpGetInputLength(op, "a", status));
    printf(" %d\n", TFE_OpGetOutputLength(op, "product", status));
    printf("length %d", TFE_OpGetInputLength(op, "nope", status));
    print_status("", status);
    printf("length %d", TFE_OpGetOutputLength(op, "nope", status));
    print_status("", status);
    TFE_DeleteOp(op);
    end();
}

static void errors(void) {
    begin();
    TFE_TensorHandle *two = vector(2), *three = vector(3), *doubles = of_type(TF_DOUBLE, 2);
    execute("shapes", new_op("AddV2", two, three));
    execute("types", new_op("AddV2", two, doubles));
    execute("too few", new_op("AddV2", two, NULL));
    execute("a reference", new_op("Assign", two, two));
    TFE_Op* op = new_op("AddV2", two, two);
    TFE_TensorHandle* output = NULL;
    int room = 0;
    TFE_Execute(op, &output, &room, status);
    print_status("no room", status);
    printf("room %d, output %d\n", room, output != NULL);
    TFE_DeleteOp(op);
    printf("op %d: %d\n", TFE_NewOp(context, "Nope", status) != NULL, TF_GetCode(status));
    TFE_DeleteTensorHandle(two);
    TFE_DeleteTensorHandle(three);
    TFE_DeleteTensorHandle(doubles);
    end();
}

/* f(x) = x * x + x. */
static TF_Function* square_plus(const char* name) {
    TF_Graph* body = TF_NewGraph();
    TF_Output x = placeholder(body, "x", TF_FLOAT);
    TF_Output y = binary(body, "AddV2", "y", binary(body, "Mul", "square", x, x), x);
    TF_Function* function =
        TF_GraphToFunction(body, name, 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, fresh(status));
    print_status("function", status);
    TF_DeleteGraph(body);
    return function;
}

static void functions(void) {
    begin();
    TF_Function* function = square_plus("f");
    printf("has %d\n", TFE_ContextHasFunction(context, "f"));
    TFE_ContextAddFunction(context, function, status);
    print_status("add", status);
    printf("has %d\n", TFE_ContextHasFunction(context, "f"));
    TFE_ContextAddFunction(context, function, status);
    print_status("add again", status);
    TFE_TensorHandle* x = vector(3);
    execute("by its name", new_op("f", x, NULL));
    TFE_Op* op = TFE_NewOp(context, "PartitionedCall", status);
    TFE_OpAddInputList(op, &x, 1, status);
    TFE_OpSetAttrFunctionName(op, "f", "f", 1);
    const TF_DataType types[] = {TF_FLOAT};
    TFE_OpSetAttrTypeList(op, "Tout", types, 1);
    execute("called", op);
    op = TFE_NewOp(context, "StatefulPartitionedCall", status);
    TFE_OpAddInputList(op, &x, 1, status);
    TFE_Op* called = TFE_NewOp(context, "f", status);
    TFE_OpSetAttrFunction(op, "f", called);
    TFE_DeleteOp(called);
    TFE_OpSetAttrTypeList(op, "Tout", types, 1);
    execute("called with state", op);
    TF_Buffer* buffer = TF_NewBuffer();
    TF_Function* other = square_plus("g");
    TF_FunctionToFunctionDef(other, buffer, status);
    TFE_ContextAddFunctionDef(context, buffer->data, buffer->length, status);
    print_status("add a message", status);
    execute("from a message", new_op("g", x, NULL));
    TFE_ContextAddFunctionDef(context, "\xff\xff", 2, status);
    print_status("add rubbish", status);
    TFE_ContextRemoveFunction(context, "f", status);
    print_status("remove", status);
    TFE_ContextRemoveFunction(context, "f", status);
    print_status("remove again", status);
    printf("op %d\n", TFE_NewOp(context, "f", status) != NULL);
    TF_DeleteBuffer(buffer);
    TF_DeleteFunction(function);
    TF_DeleteFunction(other);
    TFE_DeleteTensorHandle(x);
    end();
}

static void variables(void) {
    begin();
    TFE_Op* op = new_op("VarHandleOp", NULL, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    const int64_t dims[] = {3};
    TFE_OpSetAttrShape(op, "shape", dims, 1, status);
    TFE_OpSetAttrString(op, "shared_name", "v", 1);
    TFE_TensorHandle* variable = execute("variable", op);
    op = new_op("ReadVariableOp", variable, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    int count = 1;
    TFE_TensorHandle* output = NULL;
    TFE_Execute(op, &output, &count, status);
    print_code("read before it has a value", status);
    TFE_DeleteOp(op);
    TFE_TensorHandle* x = vector(3);
    for (int i = 0; i < 3; ++i) {
        op = new_op(i == 0 ? "AssignVariableOp" : "AssignAddVariableOp", variable, x);
        TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
        execute(i == 0 ? "assign" : "add", op);
        op = new_op("ReadVariableOp", variable, NULL);
        TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
        TFE_DeleteTensorHandle(execute("read", op));
    }
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(variable);
    end();
}

/* A kernel that is kept goes on in its stream; one of a new context starts anew. */
static void random_streams(void) {
    TF_Tensor* shapes = TF_AllocateTensor(TF_INT32, (const int64_t[]){1}, 1, 4);
    *(int*)TF_TensorData(shapes) = 4;
    for (int round = 0; round < 2; ++round) {
        begin();
        TFE_TensorHandle* shape = TFE_NewTensorHandle(shapes, status);
        for (int i = 0; i < 2; ++i) {
            TFE_Op* op = new_op("RandomUniform", shape, NULL);
            TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
            TFE_OpSetAttrInt(op, "seed", 1);
            TFE_OpSetAttrInt(op, "seed2", 2);
            TFE_DeleteTensorHandle(execute("uniform", op));
        }
        TFE_DeleteTensorHandle(shape);
        end();
    }
    TF_DeleteTensor(shapes);
}

static void queues(void) {
    begin();
    TFE_Op* op = new_op("FIFOQueueV2", NULL, NULL);
    const TF_DataType types[] = {TF_FLOAT};
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    TFE_OpSetAttrString(op, "shared_name", "q", 1);
    TFE_TensorHandle *queue = execute("queue", op), *x = vector(2);
    op = new_op("QueueEnqueueV2", queue, NULL);
    TFE_OpAddInputList(op, &x, 1, status);
    execute("enqueue", op);
    op = new_op("QueueSizeV2", queue, NULL);
    execute("size", op);
    op = new_op("QueueDequeueV2", queue, NULL);
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    execute("dequeue", op);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(queue);
    end();
}

static void* many_calls(void* argument) {
    TF_Status* mine = TF_NewStatus();
    TFE_TensorHandle* x = argument;
    float* sum = malloc(sizeof(float));
    *sum = 0;
    for (int i = 0; i < 500; ++i) {
        TFE_Op* op = TFE_NewOp(context, i % 2 ? "Mul" : "AddV2", mine);
        TFE_OpAddInput(op, x, mine);
        TFE_OpAddInput(op, x, mine);
        TFE_TensorHandle* output = NULL;
        int count = 1;
        TFE_Execute(op, &output, &count, mine);
        TFE_DeleteOp(op);
        if (TF_GetCode(mine) != TF_OK) break;
        TF_Tensor* tensor = TFE_TensorHandleResolve(output, mine);
        *sum += ((float*)TF_TensorData(tensor))[1];
        TF_DeleteTensor(tensor);
        TFE_DeleteTensorHandle(output);
    }
    TF_DeleteStatus(mine);
    return sum;
}

static void threads(void) {
    begin();
    enum { THREADS = 8 };
    pthread_t all[THREADS];
    TFE_TensorHandle* x = vector(3);
    for (int i = 0; i < THREADS; ++i) pthread_create(&all[i], NULL, many_calls, x);
    for (int i = 0; i < THREADS; ++i) {
        void* sum;
        pthread_join(all[i], &sum);
        printf("%g\n", *(float*)sum);
        free(sum);
    }
    TFE_DeleteTensorHandle(x);
    end();
}

static void run_metadata(void) {
    begin();
    TFE_ContextEnableRunMetadata(context);
    TFE_TensorHandle* x = vector(2);
    execute("add", new_op("AddV2", x, x));
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_ContextExportRunMetadata(context, buffer, status);
    print_status("export", status);
    TFE_ContextDisableRunMetadata(context);
    TFE_ContextStartStep(context);
    TFE_ContextEndStep(context);
    TFE_ContextClearCaches(context);
    TF_DeleteBuffer(buffer);
    TFE_DeleteTensorHandle(x);
    end();
}

static const Case CASES[] = {
    {"arithmetic", arithmetic},
    {"handles", handles},
    {"devices", devices},
    {"attributes", attributes},
    {"attribute_kinds", attribute_kinds},
    {"errors", errors},
    {"functions", functions},
    {"variables", variables},
    {"random_streams", random_streams},
    {"queues", queues},
    {"threads", threads},
    {"run_metadata", run_metadata},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
