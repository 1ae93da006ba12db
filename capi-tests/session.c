/* TF_SessionRun: feeds, fetches, targets and every way to get them wrong; options, devices, lifetimes. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/proto.h"

static TF_Graph* graph;
static TF_Session* session;
static TF_Status* status;

/* Runs with arrays; prints status and results. */
static void run(const char* what, int n_feeds, const TF_Output* inputs, TF_Tensor* const* feeds, int n_fetches,
                const TF_Output* outputs, int n_targets, const TF_Operation* const* targets) {
    TF_Tensor* results[8] = {NULL};
    TF_SessionRun(session, NULL, inputs, feeds, n_feeds, outputs, results, n_fetches, targets, n_targets, NULL,
                  fresh(status));
    print_status(what, status);
    for (int i = 0; i < n_fetches; ++i) {
        if (results[i] && TF_GetCode(status) != TF_OK) printf("a result in spite of the error\n");
        if (results[i]) print_tensor(what, results[i]);
        TF_DeleteTensor(results[i]);
    }
}

static void fetch(const char* what, TF_Output output) { run(what, 0, NULL, NULL, 1, &output, 0, NULL); }

static void feeds_and_fetches(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), two = float_constant(graph, "two", 2);
    TF_Output sum = binary(graph, "AddV2", "sum", x, two), negated = unary(graph, "Neg", "negated", sum);
    TF_Tensor* five = float_scalar(5);
    const TF_Output fetches[] = {negated, sum, two, sum};
    run("four", 1, &x, &five, 4, fetches, 0, NULL);
    run("intermediate fed", 1, &sum, &five, 1, &negated, 0, NULL);
    run("constant fed", 1, &two, &five, 1, &two, 0, NULL);
    const TF_Output twice[] = {x, x};
    TF_Tensor* const fives[] = {five, five};
    run("fed twice", 2, twice, fives, 1, &sum, 0, NULL);
    run("nothing asked", 1, &x, &five, 0, NULL, 0, NULL);
    run("nothing at all", 0, NULL, NULL, 0, NULL, 0, NULL);
    TF_DeleteTensor(five);
}

static void fed_and_fetched(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_Tensor* five = float_scalar(5);
    run("x", 1, &x, &five, 1, &x, 0, NULL);
    TF_DeleteTensor(five);
}

static void not_fed(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), negated = unary(graph, "Neg", "negated", x);
    fetch("unknown shape", negated);
    const int64_t dims[] = {2, -1};
    TF_Output y = shaped_placeholder(graph, "y", TF_INT64, 2, dims);
    fetch("with a shape", unary(graph, "Neg", "negated_y", y));
    TF_OperationDescription* description = TF_NewOperation(graph, "PlaceholderWithDefault", "d");
    TF_AddInput(description, float_constant(graph, "three", 3));
    TF_SetAttrShape(description, "shape", NULL, 0);
    TF_Output with_default = finish(description);
    fetch("with a default", with_default);
    run_and_print("default overridden", session, with_default, float_scalar(4), with_default, NULL);
    run_and_print("default overridden", session, with_default, float_scalar(4),
                  unary(graph, "Neg", "negated_d", with_default), NULL);
}

static void wrong_feeds(void) {
    const int64_t dims[] = {2, -1};
    TF_Output x = placeholder(graph, "x", TF_FLOAT), negated = unary(graph, "Neg", "negated", x);
    TF_Output y = shaped_placeholder(graph, "y", TF_FLOAT, 2, dims), negated_y = unary(graph, "Neg", "negated_y", y);
    run_and_print("int32 for float", session, x, int_scalar(1), negated, NULL);
    run_and_print("scalar for a matrix", session, y, float_scalar(1), negated_y, NULL);
    const int64_t three[] = {3, 1};
    const float values[] = {1, 2, 3};
    run_and_print("3 rows for 2", session, y, tensor_of(TF_FLOAT, 2, three, values), negated_y, NULL);
    TF_Output beyond = {x.oper, 1};
    run_and_print("feed of output 1", session, beyond, float_scalar(1), negated, NULL);
    run_and_print("still usable", session, x, float_scalar(1), negated, NULL);
}

static void wrong_fetches(void) {
    TF_Operation* n = no_op(graph, "n");
    TF_Output of_noop = {n, 0}, x = float_constant(graph, "x", 1), beyond = {x.oper, 1}, negative = {x.oper, -1};
    fetch("output 0 of a NoOp", of_noop);
    fetch("output 1 of a constant", beyond);
    fetch("output -1", negative);
    fetch("still usable", x);
}

static void other_graph(void) {
    TF_Graph* other = TF_NewGraph();
    TF_Output foreign = float_constant(other, "far", 1);
    float_constant(graph, "x", 1);
    fetch("fetch of another graph", foreign);
    TF_DeleteGraph(other);
}

static void targets(void) {
    TF_Operation* n = no_op(graph, "n");
    TF_Output x = placeholder(graph, "x", TF_FLOAT), negated = unary(graph, "Neg", "negated", x);
    const TF_Operation* const both[] = {n, n};
    const TF_Operation* const needs_feed[] = {negated.oper};
    run("NoOp", 0, NULL, NULL, 0, NULL, 1, both);
    run("NoOp twice", 0, NULL, NULL, 0, NULL, 2, both);
    run("target that needs a feed", 0, NULL, NULL, 0, NULL, 1, needs_feed);
    run_and_print("fetch and target", session, x, float_scalar(3), negated, n);
}

static void metadata_and_options(void) {
    TF_Output x = float_constant(graph, "x", 1);
    TF_Tensor* result = NULL;
    TF_Buffer* full = TF_NewBufferFromString("full", 4);
    TF_SessionRun(session, NULL, NULL, NULL, 0, &x, &result, 1, NULL, 0, full, fresh(status));
    print_status("metadata not empty", status);
    TF_DeleteBuffer(full);
    TF_Buffer* garbage = TF_NewBufferFromString("\xff\xff\xff", 3);
    TF_SessionRun(session, garbage, NULL, NULL, 0, &x, &result, 1, NULL, 0, NULL, fresh(status));
    print_status("garbage as options", status);
    TF_DeleteBuffer(garbage);
    TF_Buffer* metadata = TF_NewBuffer();
    TF_Buffer* trace = TF_NewBufferFromString("\x08\x03", 2); /* trace_level: FULL_TRACE */
    TF_SessionRun(session, trace, NULL, NULL, 0, &x, &result, 1, NULL, 0, metadata, fresh(status));
    print_status("trace", status);
    printf("metadata: %d\n", metadata->length > 0);
    TF_DeleteTensor(result);
    TF_DeleteBuffer(trace);
    TF_DeleteBuffer(metadata);
    TF_Buffer* none = TF_NewBufferFromString("", 0);
    TF_SessionRun(session, none, NULL, NULL, 0, &x, &result, 1, NULL, 0, NULL, fresh(status));
    print_status("empty options", status);
    TF_DeleteTensor(result);
    TF_DeleteBuffer(none);
}

static void configurations(void) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, "\xff\xff\xff", 3, fresh(status));
    print_status("garbage", status);
    TF_SetConfig(options, "", 0, fresh(status));
    print_status("empty", status);
    const char threads[] = {0x10, 1, 0x28, 1}; /* intra_op and inter_op_parallelism_threads: 1 */
    TF_SetConfig(options, threads, sizeof threads, fresh(status));
    print_status("one thread", status);
    TF_Session* own = TF_NewSession(graph, options, fresh(status));
    print_status("session", status);
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    run_and_print("run", own, x, float_scalar(3), unary(graph, "Neg", "negated", x), NULL);
    delete_session(own);
    TF_DeleteSessionOptions(options);
}

static void devices(void) {
    TF_DeviceList* list = TF_SessionListDevices(session, fresh(status));
    print_status("list", status);
    int count = TF_DeviceListCount(list);
    printf("%d devices\n", count);
    for (int i = 0; i < count; ++i) {
        printf("%s %s", TF_DeviceListName(list, i, fresh(status)), TF_DeviceListType(list, i, fresh(status)));
        printf(" %lld bytes\n", (long long)TF_DeviceListMemoryBytes(list, i, fresh(status)));
    }
    printf("%s\n", TF_DeviceListName(list, count, fresh(status)) ? "a name" : "NULL");
    print_status("beyond", status);
    printf("%lld\n", (long long)TF_DeviceListMemoryBytes(list, -1, fresh(status)));
    print_status("before", status);
    TF_DeleteDeviceList(list);
}

static void closing(void) {
    TF_Output x = float_constant(graph, "x", 1);
    fetch("open", x);
    TF_CloseSession(session, fresh(status));
    print_status("close", status);
    fetch("closed", x);
    TF_CloseSession(session, fresh(status));
    print_status("close again", status);
}

static void growing(void) {
    TF_Output x = float_constant(graph, "x", 1);
    fetch("x", x);
    TF_Output y = unary(graph, "Neg", "y", x);
    fetch("y", y);
    fetch("x", x);
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "broken");
    finish_and_print(description, "broken");
    fetch("after a failed operation", binary(graph, "AddV2", "z", y, y));
}

static void graph_deleted_first(void) {
    TF_Graph* own = TF_NewGraph();
    TF_Output x = placeholder(own, "x", TF_FLOAT), y = unary(own, "Neg", "y", x);
    TF_Session* last = new_session(own);
    TF_DeleteGraph(own);
    run_and_print("run", last, x, float_scalar(2), y, NULL);
    delete_session(last);
}

static void two_sessions(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "VarHandleOp", "v");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrShape(description, "shape", NULL, 0);
    TF_SetAttrString(description, "shared_name", "v", 1);
    TF_Output handle = finish(description);
    TF_Output value = placeholder(graph, "value", TF_FLOAT);
    description = TF_NewOperation(graph, "AssignVariableOp", "assign");
    TF_AddInput(description, handle);
    TF_AddInput(description, value);
    TF_Output assign = finish(description);
    description = TF_NewOperation(graph, "ReadVariableOp", "read");
    TF_AddInput(description, handle);
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_Output read = finish(description);
    fetch("before", read);
    run_and_print("assign", session, value, float_scalar(1.5f), NOTHING, assign.oper);
    fetch("after", read);
    TF_Session* other = new_session(graph);
    run_and_print("the other session", other, NOTHING, NULL, read, NULL);
    delete_session(other);
    fetch("still", read);
}

static void reference_variable(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "VariableV2", "v");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrShape(description, "shape", (const int64_t[]){2}, 1);
    TF_Output variable = finish(description);
    printf("type of the output %d\n", (int)TF_OperationOutputType(variable));
    TF_Output value = placeholder(graph, "value", TF_FLOAT);
    TF_Output assign = binary(graph, "Assign", "assign", variable, value);
    TF_Output add = binary(graph, "AssignAdd", "add", variable, value), read = unary(graph, "Identity", "read", variable);
    const float values[] = {1, 2};
    fetch("before", read);
    run_and_print("assign", session, value, float_vector(2, values), assign, NULL);
    fetch("the variable itself", variable);
    run_and_print("add", session, value, float_vector(2, values), add, NULL);
    fetch("after", read);
    run_and_print("wrong shape", session, value, float_scalar(1), assign, NULL);
    fetch("unchanged", read);
}

static void queue(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "FIFOQueueV2", "q");
    const TF_DataType types[] = {TF_INT32};
    const int64_t two[] = {2};
    const int64_t* dims[] = {two};
    const int ranks[] = {1};
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_SetAttrShapeList(description, "shapes", dims, ranks, 1);
    TF_SetAttrInt(description, "capacity", 10);
    TF_Output handle = finish_and_print(description, "queue");
    TF_Output value = placeholder(graph, "value", TF_INT32);
    description = TF_NewOperation(graph, "QueueEnqueueV2", "enqueue");
    TF_AddInput(description, handle);
    TF_AddInputList(description, &value, 1);
    TF_Output enqueue = finish_and_print(description, "enqueue");
    description = TF_NewOperation(graph, "QueueDequeueV2", "dequeue");
    TF_AddInput(description, handle);
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_Output dequeue = finish_and_print(description, "dequeue"), size = unary(graph, "QueueSizeV2", "size", handle);
    const int32_t first[] = {1, 2}, second[] = {3, 4}, wrong[] = {5, 6, 7};
    run_and_print("enqueue", session, value, int_vector(2, first), NOTHING, enqueue.oper);
    run_and_print("enqueue", session, value, int_vector(2, second), NOTHING, enqueue.oper);
    run_and_print("enqueue of a wrong shape", session, value, int_vector(3, wrong), NOTHING, enqueue.oper);
    fetch("size", size);
    fetch("dequeue", dequeue);
    fetch("dequeue", dequeue);
    fetch("size", size);
    description = TF_NewOperation(graph, "QueueCloseV2", "close");
    TF_AddInput(description, handle);
    TF_Output closed = finish(description);
    run_and_print("close", session, NOTHING, NULL, NOTHING, closed.oper);
    fetch("dequeue of a closed and empty one", dequeue);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void deadline(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "FIFOQueueV2", "q");
    const TF_DataType types[] = {TF_FLOAT};
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_Output handle = finish(description);
    description = TF_NewOperation(graph, "QueueDequeueV2", "dequeue");
    TF_AddInput(description, handle);
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_Output dequeue = finish(description), x = float_constant(graph, "x", 1);
    TF_Buffer* options = TF_NewBufferFromString("\x10\xe8\x07", 3); /* timeout_in_ms: 1000 */
    TF_Tensor* result = NULL;
    double start = seconds();
    TF_SessionRun(session, options, NULL, NULL, 0, &dequeue, &result, 1, NULL, 0, NULL, fresh(status));
    double taken = seconds() - start;
    print_status("dequeue of an empty queue", status);
    printf("after about a second: %d\n", taken > 0.8 && taken < 3.0);
    print_tensor("result", result);
    fetch("next run", x);
    TF_DeleteBuffer(options);
}

static void table(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "HashTableV2", "table");
    TF_SetAttrType(description, "key_dtype", TF_INT64);
    TF_SetAttrType(description, "value_dtype", TF_INT64);
    TF_Output handle = finish(description);
    const int64_t dims[] = {3}, keys[] = {1, 2, 3}, values[] = {10, 20, 30}, asked[] = {3, 9, 1}, missing = -1;
    TF_Output key_list = constant(graph, "keys", tensor_of(TF_INT64, 1, dims, keys));
    description = TF_NewOperation(graph, "LookupTableImportV2", "init_all_tables");
    TF_AddInput(description, handle);
    TF_AddInput(description, key_list);
    TF_AddInput(description, constant(graph, "values", tensor_of(TF_INT64, 1, dims, values)));
    TF_Output init = finish(description);
    description = TF_NewOperation(graph, "LookupTableFindV2", "find");
    TF_AddInput(description, handle);
    TF_AddInput(description, constant(graph, "asked", tensor_of(TF_INT64, 1, dims, asked)));
    TF_AddInput(description, constant(graph, "default", tensor_of(TF_INT64, 0, NULL, &missing)));
    TF_Output find = finish(description);
    fetch("before", find);
    run_and_print("init", session, NOTHING, NULL, NOTHING, init.oper);
    fetch("after", find);
}

static void errors_in_kernels(void) {
    TF_Output index = placeholder(graph, "index", TF_INT32), zero = placeholder(graph, "zero", TF_INT32);
    const float values[] = {1, 2, 3};
    TF_OperationDescription* description = TF_NewOperation(graph, "GatherV2", "gather");
    TF_AddInput(description, constant(graph, "v", float_vector(3, values)));
    TF_AddInput(description, index);
    TF_AddInput(description, int_constant(graph, "axis", 0));
    TF_Output gather = finish(description);
    run_and_print("gather 1", session, index, int_scalar(1), gather, NULL);
    run_and_print("gather 3", session, index, int_scalar(3), gather, NULL);
    run_and_print("gather -1", session, index, int_scalar(-1), gather, NULL);
    TF_Output quotient = binary(graph, "FloorDiv", "quotient", int_constant(graph, "seven", 7), zero);
    run_and_print("7 / 2", session, zero, int_scalar(2), quotient, NULL);
    run_and_print("7 / 0", session, zero, int_scalar(0), quotient, NULL);
    TF_Output condition = placeholder(graph, "condition", TF_BOOL), text = constant(graph, "t", string_scalar("so what"));
    description = TF_NewOperation(graph, "Assert", "assert");
    TF_AddInput(description, condition);
    TF_AddInputList(description, &text, 1);
    TF_Output assertion = finish(description);
    const unsigned char no = 0;
    run_and_print("assert false", session, condition, tensor_of(TF_BOOL, 0, NULL, &no), NOTHING, assertion.oper);
    TF_Output a = placeholder(graph, "a", TF_FLOAT), square = binary(graph, "MatMul", "square", a, a);
    const int64_t dims[] = {2, 3};
    const float six[] = {1, 2, 3, 4, 5, 6};
    run_and_print("matmul 2x3 2x3", session, a, tensor_of(TF_FLOAT, 2, dims, six), square, NULL);
    run_and_print("matmul of scalars", session, a, float_scalar(1), square, NULL);
    TF_Output b = placeholder(graph, "b", TF_FLOAT);
    TF_Output sum = binary(graph, "AddV2", "sum", b, constant(graph, "two", float_vector(2, six)));
    run_and_print("3 + 2", session, b, float_vector(3, six), sum, NULL);
    run_and_print("still usable", session, b, float_scalar(1), sum, NULL);
}

static void shape_of_a_run_time_value(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), shape = placeholder(graph, "shape", TF_INT32);
    TF_Output reshaped = binary(graph, "Reshape", "reshaped", x, shape);
    static const int32_t SHAPES[][2] = {{2, 3}, {3, -1}, {4, 2}, {-1, -1}, {-2, 3}};
    const float six[] = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < N_ELEMENTS(SHAPES); ++i) {
        const TF_Output inputs[] = {x, shape};
        TF_Tensor* const feeds[] = {float_vector(6, six), int_vector(2, SHAPES[i])};
        run("reshape", 2, inputs, feeds, 1, &reshaped, 0, NULL);
        TF_DeleteTensor(feeds[0]);
        TF_DeleteTensor(feeds[1]);
    }
}

static void placed_on_gpu(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "on_gpu");
    TF_AddInput(description, float_constant(graph, "one", 1));
    TF_SetDevice(description, "/device:GPU:0");
    TF_Output negated = finish(description);
    fetch("hard placement", negated);
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, "\x38\x01", 2, fresh(status)); /* allow_soft_placement */
    TF_Session* soft = TF_NewSession(graph, options, fresh(status));
    run_and_print("soft placement", soft, NOTHING, NULL, negated, NULL);
    delete_session(soft);
    TF_DeleteSessionOptions(options);
}

static void wrong_device(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "n");
    TF_AddInput(description, float_constant(graph, "one", 1));
    TF_SetDevice(description, "a nonsensical device");
    fetch("nonsense", finish(description));
}

static void conv_nchw(void) {
    const int64_t dims[] = {1, 1, 4, 4}, filter_dims[] = {1, 1, 1, 1};
    float values[16];
    for (int i = 0; i < 16; ++i) values[i] = (float)i;
    const float two = 2;
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_OperationDescription* description = TF_NewOperation(graph, "Conv2D", "conv");
    TF_AddInput(description, x);
    TF_AddInput(description, constant(graph, "w", tensor_of(TF_FLOAT, 4, filter_dims, &two)));
    TF_SetAttrIntList(description, "strides", (const int64_t[]){1, 1, 1, 1}, 4);
    TF_SetAttrString(description, "padding", "SAME", 4);
    TF_SetAttrString(description, "data_format", "NCHW", 4);
    run_and_print("NCHW", session, x, tensor_of(TF_FLOAT, 4, dims, values), finish(description), NULL);
}

typedef struct {
    const char *name, *op, *inputs[2];
    const char* extra; /* attribute besides T=int32: "frame_name", "N", or NULL */
} LoopNode;

/* v1 control flow: i = start; while (i < 100) i = i + i. The back edge can only be imported. */
static const LoopNode LOOP[] = {
    {"enter", "Enter", {"start", NULL}, "frame_name"},
    {"limit", "Enter", {"hundred", NULL}, "frame_name"},
    {"merge", "Merge", {"enter", "next"}, "N"},
    {"less", "Less", {"merge", "limit"}, NULL},
    {"condition", "LoopCond", {"less", NULL}, "none"},
    {"switch", "Switch", {"merge", "condition"}, NULL},
    {"turn", "Identity", {"switch:1", NULL}, NULL},
    {"body", "AddV2", {"turn", "turn"}, NULL},
    {"next", "NextIteration", {"body", NULL}, NULL},
    {"result", "Exit", {"switch", NULL}, NULL},
};

static void add_attr(Message* node, const char* name, int field, const void* text, int64_t number) {
    Message value = {0}, entry = {0};
    if (text) message_text(&value, field, text);
    else message_int(&value, field, number);
    message_text(&entry, 1, name);
    message_part(&entry, 2, &value);
    message_part(node, 5, &entry);
}

static void loop_of_version_1(void) {
    Message def = {0};
    for (int i = 0; i < N_ELEMENTS(LOOP); ++i) {
        Message node = {0};
        message_text(&node, 1, LOOP[i].name);
        message_text(&node, 2, LOOP[i].op);
        for (int k = 0; k < 2 && LOOP[i].inputs[k]; ++k) message_text(&node, 3, LOOP[i].inputs[k]);
        const char* extra = LOOP[i].extra ? LOOP[i].extra : "";
        if (strcmp(extra, "none") != 0) add_attr(&node, "T", 6, NULL, TF_INT32);
        if (strcmp(extra, "N") == 0) add_attr(&node, "N", 3, NULL, 2);
        if (strcmp(extra, "frame_name") == 0) add_attr(&node, "frame_name", 2, "loop", 0);
        if (strcmp(LOOP[i].name, "limit") == 0) add_attr(&node, "is_constant", 5, NULL, 1);
        message_part(&def, 1, &node);
    }
    TF_Output start = placeholder(graph, "start", TF_INT32), hundred = int_constant(graph, "hundred", 100);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsAddInputMapping(options, "start", 0, start);
    TF_ImportGraphDefOptionsAddInputMapping(options, "hundred", 0, hundred);
    TF_Buffer* buffer = TF_NewBufferFromString(def.data, def.length);
    TF_GraphImportGraphDef(graph, buffer, options, fresh(status));
    print_status("import", status);
    TF_DeleteBuffer(buffer);
    TF_DeleteImportGraphDefOptions(options);
    message_free(&def);
    TF_Output result = {TF_GraphOperationByName(graph, "result"), 0};
    run_and_print("from 3", session, start, int_scalar(3), result, NULL);
    run_and_print("from 1", session, start, int_scalar(1), result, NULL);
    run_and_print("from 500", session, start, int_scalar(500), result, NULL);
}

static void switch_and_merge(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), which = placeholder(graph, "which", TF_BOOL);
    TF_Output no = binary(graph, "Switch", "switch", x, which), yes = {no.oper, 1};
    TF_OperationDescription* description = TF_NewOperation(graph, "Merge", "merge");
    const TF_Output branches[] = {unary(graph, "Neg", "negated", no), unary(graph, "Square", "squared", yes)};
    TF_AddInputList(description, branches, 2);
    TF_Output merged = finish(description), index = {merged.oper, 1};
    for (unsigned char value = 0; value < 2; ++value) {
        const TF_Output inputs[] = {x, which}, outputs[] = {merged, index};
        TF_Tensor* const feeds[] = {float_scalar(3), tensor_of(TF_BOOL, 0, NULL, &value)};
        run(value ? "true" : "false", 2, inputs, feeds, 2, outputs, 0, NULL);
        run("dead branch", 2, inputs, feeds, 1, value ? &branches[0] : &branches[1], 0, NULL);
        TF_DeleteTensor(feeds[0]);
        TF_DeleteTensor(feeds[1]);
    }
}

static void evaluate_constant(void) {
    TF_Output product = binary(graph, "Mul", "product", int_constant(graph, "six", 6), int_constant(graph, "seven", 7));
    TF_Tensor* result = NULL;
    printf("%d\n", TF_TryEvaluateConstant(graph, product, &result, fresh(status)));
    print_status("constant", status);
    print_tensor("constant", result);
    TF_DeleteTensor(result);
    result = NULL;
    TF_Output x = placeholder(graph, "x", TF_INT32);
    printf("%d\n", TF_TryEvaluateConstant(graph, binary(graph, "Mul", "p2", x, product), &result, fresh(status)));
    print_status("not constant", status);
    print_tensor("not constant", result);
}

static void unknown_target(void) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetTarget(options, "nonsense");
    TF_Session* none = TF_NewSession(graph, options, fresh(status));
    print_code("session", status); /* the text has a part in the middle that changes from run to run */
    printf("names it: %d\n", strstr(TF_Message(status), "target: \"nonsense\"") != NULL);
    printf("%s\n", none ? "a session" : "NULL");
    TF_DeleteSessionOptions(options);
}

static void in_new_session(void (*body)(void)) {
    graph = TF_NewGraph();
    status = TF_NewStatus();
    session = new_session(graph);
    body();
    delete_session(session);
    TF_DeleteStatus(status);
    TF_DeleteGraph(graph);
}

#define IN_NEW_SESSION(body) \
    static void run_##body(void) { in_new_session(body); }
#define CASE(body) {#body, run_##body}

IN_NEW_SESSION(feeds_and_fetches)
IN_NEW_SESSION(fed_and_fetched)
IN_NEW_SESSION(not_fed)
IN_NEW_SESSION(wrong_feeds)
IN_NEW_SESSION(wrong_fetches)
IN_NEW_SESSION(other_graph)
IN_NEW_SESSION(targets)
IN_NEW_SESSION(metadata_and_options)
IN_NEW_SESSION(configurations)
IN_NEW_SESSION(devices)
IN_NEW_SESSION(closing)
IN_NEW_SESSION(growing)
IN_NEW_SESSION(graph_deleted_first)
IN_NEW_SESSION(two_sessions)
IN_NEW_SESSION(reference_variable)
IN_NEW_SESSION(queue)
IN_NEW_SESSION(deadline)
IN_NEW_SESSION(table)
IN_NEW_SESSION(errors_in_kernels)
IN_NEW_SESSION(shape_of_a_run_time_value)
IN_NEW_SESSION(placed_on_gpu)
IN_NEW_SESSION(wrong_device)
IN_NEW_SESSION(conv_nchw)
IN_NEW_SESSION(loop_of_version_1)
IN_NEW_SESSION(switch_and_merge)
IN_NEW_SESSION(evaluate_constant)
IN_NEW_SESSION(unknown_target)

static const Case CASES[] = {
    CASE(feeds_and_fetches), CASE(fed_and_fetched), CASE(not_fed), CASE(wrong_feeds), CASE(wrong_fetches),
    CASE(other_graph), CASE(targets), CASE(metadata_and_options), CASE(configurations), CASE(devices), CASE(closing),
    CASE(growing), CASE(graph_deleted_first), CASE(two_sessions), CASE(reference_variable), CASE(queue),
    CASE(deadline), CASE(table), CASE(errors_in_kernels), CASE(shape_of_a_run_time_value), CASE(placed_on_gpu),
    CASE(wrong_device), CASE(conv_nchw), CASE(loop_of_version_1), CASE(switch_and_merge), CASE(evaluate_constant),
    CASE(unknown_target),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
