/* Calls: attributes as messages, reset, shapes before execution; functions of a context; what a context says of itself. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_experimental.h>

#include "harness/build.h"
#include "harness/eager.h"
#include "harness/harness.h"
#include "harness/proto.h"

/* Prints name and attributes of a NameAttrList in the order of the names: a map has none of its own. */
static void print_attributes(const char* what, const TFE_OpAttrs* attributes) {
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_OpAttrsSerialize(attributes, buffer, fresh(status));
    print_status(what, status);
    char* lines[16];
    int count = 0;
    Fields fields = fields_of(buffer->data, buffer->length);
    while (next_field(&fields)) {
        if (fields.field == 1) printf("  of %.*s\n", (int)fields.length, (const char*)fields.bytes);
        if (fields.field != 2 || count == 16) continue;
        Fields entry = fields_of(fields.bytes, fields.length);
        char* line = calloc(1, 512);
        while (next_field(&entry)) {
            if (entry.field == 1) snprintf(line, 100, "%.*s:", (int)entry.length, (const char*)entry.bytes);
            if (entry.field != 2) continue;
            for (size_t i = 0; i < entry.length && i < 100; ++i) sprintf(line + strlen(line), " %02x", entry.bytes[i]);
        }
        lines[count++] = line;
    }
    for (int i = 0; i < count; ++i) {
        for (int j = i + 1; j < count; ++j) {
            if (strcmp(lines[i], lines[j]) <= 0) continue;
            char* swapped = lines[i];
            lines[i] = lines[j];
            lines[j] = swapped;
        }
        printf("  %s\n", lines[i]);
        free(lines[i]);
    }
    TF_DeleteBuffer(buffer);
}

static void attributes(void) {
    begin_eager(false);
    const int64_t dims[] = {2, 3};
    TFE_TensorHandle* matrix = floats(2, dims);
    TFE_Op* op = new_op("MatMul", NULL, NULL);
    print_attributes("new", TFE_OpGetAttrs(op));
    TFE_OpAddInput(op, matrix, status);
    print_attributes("with an input", TFE_OpGetAttrs(op));
    TFE_OpAddInput(op, matrix, status);
    TFE_OpSetAttrBool(op, "transpose_b", 1);
    const TFE_OpAttrs* kept = TFE_OpGetAttrs(op);
    print_attributes("with an attribute", kept);
    TFE_OpSetAttrBool(op, "transpose_a", 0);
    print_attributes("with one more", kept);
    TFE_Op* second = new_op("MatMul", matrix, matrix);
    TFE_OpAddAttrs(second, kept);
    print_attributes("added to another", TFE_OpGetAttrs(second));
    TFE_DeleteTensorHandle(execute("another", second));
    TFE_DeleteTensorHandle(execute("the first", op));
    op = new_op("Pack", NULL, NULL);
    TFE_TensorHandle* list[] = {matrix, matrix};
    TFE_OpAddInputList(op, list, 2, status);
    TFE_OpSetAttrInt(op, "axis", -1);
    print_attributes("list", TFE_OpGetAttrs(op));
    TFE_DeleteOp(op);
    op = new_op("IdentityN", NULL, NULL);
    TFE_OpAddInputList(op, list, 2, status);
    print_attributes("list of types", TFE_OpGetAttrs(op));
    TFE_DeleteOp(op);
    op = new_op("VarHandleOp", NULL, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpSetAttrShape(op, "shape", dims, 2, status);
    TFE_OpSetAttrString(op, "shared_name", "v", 1);
    print_attributes("more kinds", TFE_OpGetAttrs(op));
    TFE_DeleteOp(op);
    TFE_DeleteTensorHandle(matrix);
    end_eager();
}

static void attribute_messages(void) {
    begin_eager(false);
    const int64_t dims[] = {2, 3};
    TFE_TensorHandle* matrix = floats(2, dims);
    TFE_Op* op = new_op("MatMul", matrix, matrix);
    Message value = {0};
    message_int(&value, 5, 1);
    TFE_OpSetAttrValueProto(op, "transpose_b", value.data, value.length, fresh(status));
    print_status("a truth value", status);
    message_free(&value);
    print_attributes("set", TFE_OpGetAttrs(op));
    TFE_OpSetAttrValueProto(op, "transpose_a", "\xff\xff", 2, fresh(status));
    print_status("rubbish", status);
    TFE_DeleteTensorHandle(execute("product", op));
    op = new_op("Cast", matrix, NULL);
    value = (Message){0};
    message_int(&value, 6, TF_INT32);
    TFE_OpSetAttrValueProto(op, "DstT", value.data, value.length, fresh(status));
    print_status("a type", status);
    message_free(&value);
    TFE_DeleteTensorHandle(execute("cast", op));
    TFE_DeleteTensorHandle(matrix);
    end_eager();
}

static void reset(void) {
    begin_eager(false);
    TFE_TensorHandle *x = vector(3), *y = vector(3);
    TFE_Op* op = new_op("AddV2", x, y);
    TFE_OpSetDevice(op, "/device:CPU:0", fresh(status));
    static const char* const NAMES[] = {"Mul", "Sub", "MatMul", "Exp", "Nope", "Maximum"};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) {
        TFE_OpReset(op, NAMES[i], i == 1 ? "/device:CPU:0" : NULL, fresh(status));
        print_code(NAMES[i], status);
        if (TF_GetCode(status) != TF_OK) continue;
        printf("  %s on [%s], %d inputs\n", TFE_OpGetName(op, fresh(status)), TFE_OpGetDevice(op, fresh(status)),
               TFE_OpGetFlatInputCount(op, fresh(status)));
        TFE_OpAddInput(op, x, fresh(status));
        if (i != 3) TFE_OpAddInput(op, y, fresh(status));
        TFE_TensorHandle* output = NULL;
        int count = 1;
        TFE_Execute(op, &output, &count, fresh(status));
        print_code("  executed", status);
        if (TF_GetCode(status) != TF_OK) continue;
        print_handle("  output", output);
        TFE_DeleteTensorHandle(output);
    }
    TFE_OpReset(op, "Add", "nonsense", fresh(status));
    print_code("with a wrong device", status);
    TFE_DeleteOp(op);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(y);
    end_eager();
}

static void print_shapes(TF_ShapeAndTypeList* list) {
    for (int i = 0; list && i < list->num_items; ++i) {
        printf("  %d:", list->items[i].num_dims);
        for (int j = 0; j < list->items[i].num_dims; ++j) printf(" %lld", (long long)list->items[i].dims[j]);
        printf("\n");
    }
}

static void shapes(void) {
    begin_eager(false);
    TFE_TensorHandle* x = vector(3);
    TFE_Op* op = new_op("MatMul", NULL, NULL);
    TFE_OpSetAttrType(op, "T", TF_FLOAT);
    TF_ShapeAndTypeList* inputs = TF_NewShapeAndTypeList(2);
    const int64_t a[] = {4, 5}, b[] = {5, -1}, c[] = {6, 7};
    TF_ShapeAndTypeListSetShape(inputs, 0, a, 2);
    TF_ShapeAndTypeListSetShape(inputs, 1, b, 2);
    TF_ShapeAndTypeList* outputs = NULL;
    TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, fresh(status));
    print_status("known in part", status);
    print_shapes(outputs);
    TF_DeleteShapeAndTypeList(outputs);
    TF_ShapeAndTypeListSetUnknownShape(inputs, 0);
    outputs = NULL;
    TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, fresh(status));
    print_status("unknown", status);
    print_shapes(outputs);
    TF_DeleteShapeAndTypeList(outputs);
    TF_ShapeAndTypeListSetShape(inputs, 0, a, 2);
    TF_ShapeAndTypeListSetShape(inputs, 1, c, 2);
    outputs = NULL;
    TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, fresh(status));
    print_status("that do not fit", status);
    print_shapes(outputs);
    TF_DeleteShapeAndTypeList(inputs);
    TFE_DeleteOp(op);
    op = new_op("Fill", NULL, NULL);
    TFE_OpSetAttrType(op, "T", TF_FLOAT);
    inputs = TF_NewShapeAndTypeList(2);
    const int64_t two[] = {2};
    TF_ShapeAndTypeListSetShape(inputs, 0, two, 1);
    TF_ShapeAndTypeListSetShape(inputs, 1, NULL, 0);
    TF_Tensor* values[2] = {int_vector(2, (const int32_t[]){7, 8}), NULL};
    outputs = NULL;
    TFE_InferShapes(op, inputs, values, NULL, NULL, &outputs, NULL, fresh(status));
    print_status("from a value", status);
    print_shapes(outputs);
    TF_DeleteShapeAndTypeList(outputs);
    outputs = NULL;
    TFE_InferShapes(op, inputs, NULL, NULL, NULL, &outputs, NULL, fresh(status));
    print_status("without the value", status);
    print_shapes(outputs);
    TF_DeleteShapeAndTypeList(outputs);
    TF_DeleteShapeAndTypeList(inputs);
    TF_DeleteTensor(values[0]);
    TFE_DeleteOp(op);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

/* f(x) = x * x + x. */
static TF_Function* square_plus(const char* name) {
    TF_Graph* body = TF_NewGraph();
    TF_Output x = placeholder(body, "x", TF_FLOAT);
    TF_Output y = binary(body, "AddV2", "y", binary(body, "Mul", "square", x, x), x);
    TF_Function* function =
        TF_GraphToFunction(body, name, 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, fresh(status));
    TF_DeleteGraph(body);
    return function;
}

static int count_fields(const TF_Buffer* buffer, int wanted) {
    int count = 0;
    Fields fields = fields_of(buffer->data, buffer->length);
    while (next_field(&fields)) count += fields.field == wanted;
    return count;
}

static void functions(void) {
    begin_eager(false);
    TF_Function* function = square_plus("f");
    TFE_ContextAddFunction(context, function, fresh(status));
    print_status("add", status);
    TF_Buffer* def = TF_NewBuffer();
    TFE_ContextGetFunctionDef(context, "f", def, fresh(status));
    print_status("message", status);
    printf("%d signatures, %d nodes\n", count_fields(def, 1), count_fields(def, 3));
    TF_DeleteBuffer(def);
    def = TF_NewBuffer();
    TFE_ContextGetFunctionDef(context, "g", def, fresh(status));
    print_status("message of none", status);
    TF_DeleteBuffer(def);
    TF_Function* found = TFE_ContextGetFunction(context, "f", fresh(status));
    print_status("function", status);
    printf("named %s\n", TF_FunctionName(found));
    TFE_TensorHandle* x = vector(3);
    TFE_DeleteTensorHandle(execute("called", new_op("f", x, NULL)));
    TF_DeleteFunction(found);
    printf("none %d", TFE_ContextGetFunction(context, "g", fresh(status)) != NULL);
    print_status("", status);
    TF_Buffer* debug = TF_NewBuffer();
    TFE_ContextGetGraphDebugInfo(context, "f", debug, fresh(status));
    print_status("debug info", status);
    printf("%zu bytes\n", debug->length);
    TF_DeleteBuffer(debug);
    debug = TF_NewBuffer();
    TFE_ContextGetGraphDebugInfo(context, "g", debug, fresh(status));
    print_status("debug info of none", status);
    TF_DeleteBuffer(debug);
    TFE_ContextRemoveFunction(context, "f", fresh(status));
    print_status("remove", status);
    TF_DeleteFunction(function);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void print_metadata(const char* what) {
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_ContextExportRunMetadata(context, buffer, fresh(status));
    print_status(what, status);
    Fields fields = fields_of(buffer->data, buffer->length);
    int partitions = 0, functions_seen = 0, nodes = 0;
    while (next_field(&fields)) {
        partitions += fields.field == 3;
        functions_seen += fields.field == 4;
        if (fields.field != 1) continue;
        Fields stats = fields_of(fields.bytes, fields.length);
        while (next_field(&stats)) {
            Fields device = fields_of(stats.bytes, stats.length);
            while (next_field(&device)) nodes += device.field == 2;
        }
    }
    printf("  %d partitions, %d functions, nodes %d\n", partitions, functions_seen, nodes > 0);
    TF_DeleteBuffer(buffer);
}

static void collection(void) {
    begin_eager(false);
    TF_Function *f = square_plus("f"), *g = square_plus("g");
    TFE_ContextAddFunction(context, f, fresh(status));
    TFE_ContextAddFunction(context, g, fresh(status));
    TFE_TensorHandle* x = vector(3);
    print_metadata("nothing collected");
    TFE_ContextEnableGraphCollection(context);
    TFE_DeleteTensorHandle(execute_quietly("f", new_op("f", x, NULL)));
    print_metadata("a function");
    TFE_DeleteTensorHandle(execute_quietly("f", new_op("f", x, NULL)));
    print_metadata("the same again");
    TFE_DeleteTensorHandle(execute_quietly("add", new_op("AddV2", x, x)));
    print_metadata("an op");
    TFE_ContextDisableGraphCollection(context);
    TFE_DeleteTensorHandle(execute_quietly("g", new_op("g", x, NULL)));
    print_metadata("switched off");
    TF_DeleteFunction(f);
    TF_DeleteFunction(g);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void settings(void) {
    begin_eager(false);
    printf("number %llu\n", (unsigned long long)TFE_GetContextId(context));
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_HostAddressSpace(context, buffer);
    printf("address space [%.*s]\n", (int)buffer->length, (const char*)buffer->data);
    TF_DeleteBuffer(buffer);
    TFE_TensorHandle* x = vector(2);
    TFE_ContextSetLogDevicePlacement(context, 0, fresh(status));
    print_status("log placement", status);
    TFE_ContextSetSoftDevicePlacement(context, 1, fresh(status));
    print_status("soft placement", status);
    TFE_ContextSetRunEagerOpAsFunction(context, 1, fresh(status));
    print_status("ops as functions", status);
    TFE_DeleteTensorHandle(execute("as a function", new_op("AddV2", x, x)));
    TFE_ContextSetRunEagerOpAsFunction(context, 0, fresh(status));
    TFE_ContextSetJitCompileRewrite(context, 1, fresh(status));
    print_status("compile", status);
    TFE_ContextSetJitCompileRewrite(context, 0, fresh(status));
    buffer = TF_NewBuffer();
    TFE_GetExecutedOpNames(context, buffer, fresh(status));
    print_status("executed", status);
    printf("[%.*s]\n", (int)buffer->length, (const char*)buffer->data);
    TF_DeleteBuffer(buffer);
    TFE_ContextClearCaches(context);
    TFE_ContextAsyncWait(context, fresh(status));
    print_status("wait", status);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void options(void) {
    status = TF_NewStatus();
    TFE_ContextOptions* options = TFE_NewContextOptions();
    TFE_ContextOptionsSetTfrt(options, true);
    context = TFE_NewContext(options, fresh(status));
    printf("context %d", context != NULL);
    print_status("", status);
    if (context) TFE_DeleteContext(context);
    TFE_ContextOptionsSetTfrt(options, false);
    TFE_ContextOptionsSetConfig(options, "\xff\xff", 2, fresh(status));
    print_status("rubbish", status);
    Message config = {0}, count = {0};
    message_text(&count, 1, "CPU");
    message_int(&count, 2, 2);
    message_part(&config, 1, &count);
    message_int(&config, 7, 1);
    TFE_ContextOptionsSetConfig(options, config.data, config.length, fresh(status));
    print_status("config", status);
    message_free(&config);
    TFE_ContextOptionsSetDevicePlacementPolicy(options, TFE_DEVICE_PLACEMENT_WARN);
    TFE_ContextOptionsSetAsync(options, 1);
    context = TFE_NewContext(options, fresh(status));
    print_status("context", status);
    TFE_DeleteContextOptions(options);
    TF_DeviceList* list = TFE_ContextListDevices(context, status);
    printf("%d devices, policy %d\n", TF_DeviceListCount(list), TFE_ContextGetDevicePlacementPolicy(context));
    TF_DeleteDeviceList(list);
    TFE_TensorHandle* x = vector(2);
    TFE_Op* op = new_op("AddV2", x, x);
    TFE_OpSetDevice(op, "/device:GPU:0", fresh(status));
    TFE_TensorHandle* sum = execute("placed softly", op);
    printf("on %s\n", TFE_TensorHandleDeviceName(sum, fresh(status)));
    TFE_DeleteTensorHandle(sum);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

/* What needs other processes. */
static void clusters(void) {
    begin_eager(false);
    TFE_ContextSetServerDef(context, 0, "\xff\xff", 2, fresh(status));
    print_status("rubbish", status);
    TFE_ContextUpdateServerDef(context, 0, "\xff\xff", 2, fresh(status));
    print_status("rubbish", status);
    TFE_ContextSetServerDefWithTimeout(context, 0, "\xff\xff", 2, 10, fresh(status), true);
    print_status("rubbish", status);
    TFE_ContextUpdateServerDefWithTimeout(context, 0, "\xff\xff", 2, 10, fresh(status));
    print_status("rubbish", status);
    TFE_ContextSetServerDefWithTimeoutAndRetries(context, 0, "\xff\xff", 2, 10, 1, fresh(status), true);
    print_status("rubbish", status);
    TFE_EnableCollectiveOps(context, "\xff\xff", 2, fresh(status));
    print_status("rubbish", status);
    TFE_InitializeLocalOnlyContext(context, 0, "\xff\xff", 2, fresh(status));
    print_status("rubbish", status);
    TF_Buffer* server = TFE_GetServerDef("cluster { job { name: 'worker' tasks { key: 0 value: 'a:1' } } } "
                                         "job_name: 'worker' task_index: 0 protocol: 'grpc'",
                                         fresh(status));
    print_status("server", status);
    printf("%d clusters, %d jobs\n", count_fields(server, 1), count_fields(server, 2));
    TF_DeleteBuffer(server);
    printf("wrong %d", TFE_GetServerDef("job_name 3", fresh(status)) != NULL);
    print_code("", status);
    end_eager();
}

static void coordination(void) {
    begin_eager(false);
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_InsertConfigKeyValue(context, "k", "v", fresh(status));
    print_status("insert", status);
    TFE_GetConfigKeyValue(context, "k", 10, buffer, fresh(status));
    print_status("get", status);
    TFE_DeleteConfigKeyValue(context, "k", fresh(status));
    print_status("delete", status);
    TFE_ReportErrorToCluster(context, 3, "text", fresh(status));
    print_status("report", status);
    TFE_WaitAtBarrier(context, "b", 10, fresh(status));
    print_status("barrier", status);
    TFE_CollectiveOpsCheckPeerHealth(context, "/job:worker/replica:0/task:0", 10, fresh(status));
    print_status("health", status);
    TF_DeleteBuffer(buffer);
    end_eager();
}

/* Two threads add functions to one context, call them and take them away. */
static void* use_functions(void* argument) {
    TF_Status* mine = TF_NewStatus();
    const char* name = argument;
    int good = 0;
    TFE_TensorHandle* x = vector(3);
    for (int i = 0; i < 30; ++i) {
        TF_Graph* body = TF_NewGraph();
        TF_Output input = placeholder(body, "x", TF_FLOAT), output = binary(body, "Mul", "y", input, input);
        TF_Function* function = TF_GraphToFunction(body, name, 0, -1, NULL, 1, &input, 1, &output, NULL, NULL, NULL, mine);
        TF_DeleteGraph(body);
        TFE_ContextAddFunction(context, function, mine);
        TFE_Op* op = TFE_NewOp(context, name, mine);
        TFE_OpAddInput(op, x, mine);
        TFE_TensorHandle* y = NULL;
        int count = 1;
        TFE_Execute(op, &y, &count, mine);
        if (TF_GetCode(mine) == TF_OK) {
            TF_Tensor* tensor = TFE_TensorHandleResolve(y, mine);
            good += ((float*)TF_TensorData(tensor))[2] == 9;
            TF_DeleteTensor(tensor);
            TFE_DeleteTensorHandle(y);
        }
        TFE_DeleteOp(op);
        TFE_ContextRemoveFunction(context, name, mine);
        TF_DeleteFunction(function);
    }
    TFE_DeleteTensorHandle(x);
    TF_DeleteStatus(mine);
    return (void*)(intptr_t)good;
}

static void threads(void) {
    begin_eager(false);
    pthread_t both[2];
    const char* const names[2] = {"first", "second"};
    for (int i = 0; i < 2; ++i) pthread_create(&both[i], NULL, use_functions, (void*)names[i]);
    for (int i = 0; i < 2; ++i) {
        void* good;
        pthread_join(both[i], &good);
        printf("%d\n", (int)(intptr_t)good);
    }
    end_eager();
}

static const Case CASES[] = {
    {"attributes", attributes}, {"attribute_messages", attribute_messages},
    {"reset", reset},           {"shapes", shapes},
    {"functions", functions},   {"collection", collection},
    {"settings", settings},     {"options", options},
    {"clusters", clusters},     {"coordination", coordination},
    {"threads", threads},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
