/* What outlives or bends a step: variables, queues, tables, deadlines, control flow, partial runs. */
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/proto.h"

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
    TF_Output add = binary(graph, "AssignAdd", "add", variable, value),
              read = unary(graph, "Identity", "read", variable);
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

/* A queue of int32 scalars (with a priority before, where it has one), and ops on it. */
static TF_Output queue_of(const char* op) {
    TF_OperationDescription* description = TF_NewOperation(graph, op, op);
    const TF_DataType type = TF_INT32;
    const int64_t* dims[] = {NULL};
    const int rank = 0;
    TF_SetAttrTypeList(description, "component_types", &type, 1);
    TF_SetAttrShapeList(description, "shapes", dims, &rank, 1);
    TF_SetAttrString(description, "shared_name", "q", 1);
    if (strcmp(op, "RandomShuffleQueueV2") == 0) {
        TF_SetAttrInt(description, "seed", 7);
        TF_SetAttrInt(description, "seed2", 11);
        TF_SetAttrInt(description, "min_after_dequeue", 2);
    }
    return finish(description);
}

static TF_Output dequeue_of(const char* op, TF_Output queue, int n_components) {
    TF_OperationDescription* description = TF_NewOperation(graph, op, op);
    TF_AddInput(description, queue);
    if (strcmp(op, "QueueDequeueV2") != 0) TF_AddInput(description, int_constant(graph, op[12] == 'M' ? "n" : "up_to", 3));
    const TF_DataType types[] = {TF_INT64, TF_INT32};
    TF_SetAttrTypeList(description, "component_types", types + (2 - n_components), n_components);
    TF_Output output = finish(description);
    output.index = n_components - 1;
    return output;
}

static void fill_and_drain(const char* op, int n_components) {
    TF_Output queue = queue_of(op);
    const int64_t count = 8, priorities[] = {5, 3, 3, 9, 1, 3, 7, 3};
    const int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
    TF_OperationDescription* description = TF_NewOperation(graph, "QueueEnqueueManyV2", "enqueue");
    TF_AddInput(description, queue);
    TF_Output tuple[] = {constant(graph, "priorities", tensor_of(TF_INT64, 1, &count, priorities)),
                         constant(graph, "numbers", int_vector(count, numbers))};
    TF_AddInputList(description, tuple + (2 - n_components), n_components);
    TF_Output enqueue = finish(description), one = dequeue_of("QueueDequeueV2", queue, n_components),
              many = dequeue_of("QueueDequeueManyV2", queue, n_components),
              up_to = dequeue_of("QueueDequeueUpToV2", queue, n_components), size = unary(graph, "QueueSizeV2", "size", queue),
              closed = unary(graph, "QueueIsClosedV2", "closed", queue), close = unary(graph, "QueueCloseV2", "close", queue);
    run_and_print("enqueue", session, NOTHING, NULL, NOTHING, enqueue.oper);
    fetch("one", one);
    fetch("many", many);
    fetch("size", size);
    fetch("is closed", closed);
    run_and_print("close", session, NOTHING, NULL, NOTHING, close.oper);
    run_and_print("close again", session, NOTHING, NULL, NOTHING, close.oper);
    run_and_print("enqueue", session, NOTHING, NULL, NOTHING, enqueue.oper);
    fetch("many", many);
    fetch("the rest is too few", many);
    /* The reference loses what is left of a queue with priorities when fewer would do. */
    fetch("the rest", n_components == 2 ? one : up_to);
    fetch("none", one);
    fetch("is closed", closed);
}

static void queue_with_rest(void) { fill_and_drain("FIFOQueueV2", 1); }
static void padding_queue(void) { fill_and_drain("PaddingFIFOQueueV2", 1); }
static void priority_queue(void) { fill_and_drain("PriorityQueueV2", 2); }
static void shuffling_queue(void) { fill_and_drain("RandomShuffleQueueV2", 1); }

/* Elements written by a scatter, read one by one, then too often; an element that is not there. */
static void tensor_array(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "TensorArrayV3", "array");
    TF_AddInput(description, int_constant(graph, "size", 3));
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_Output handle = finish_and_print(description, "array"), flow = {handle.oper, 1};
    const int32_t places[] = {2, 0};
    const float values[] = {20, 5};
    description = TF_NewOperation(graph, "TensorArrayScatterV3", "scatter");
    TF_AddInput(description, handle);
    TF_AddInput(description, constant(graph, "places", int_vector(2, places)));
    TF_AddInput(description, constant(graph, "values", float_vector(2, values)));
    TF_AddInput(description, flow);
    TF_Output filled = finish(description), index = placeholder(graph, "index", TF_INT32), last = filled;
    for (int i = 0; i < 2; ++i) {
        description = TF_NewOperation(graph, "TensorArrayReadV3", i ? "again" : "read");
        TF_AddInput(description, handle);
        TF_AddInput(description, index);
        TF_AddInput(description, filled);
        TF_SetAttrType(description, "dtype", TF_FLOAT);
        if (i) TF_AddControlInput(description, last.oper);
        last = finish(description);
        run_and_print(i ? "read again" : "read", session, index, int_scalar(2), last, NULL);
    }
    TF_Output read = {TF_GraphOperationByName(graph, "read"), 0};
    run_and_print("not written", session, index, int_scalar(1), read, NULL);
    run_and_print("outside", session, index, int_scalar(3), read, NULL);
    description = TF_NewOperation(graph, "TensorArraySizeV3", "count");
    TF_AddInput(description, handle);
    TF_AddInput(description, filled);
    fetch("size", finish(description));
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

typedef struct {
    const char *name, *op, *inputs[2];
    const char* extra; /* attribute besides T=int32: "frame_name", "N", or NULL */
} LoopNode;

/* v1 control flow: i = start; while (i < 100) i = i + i. The back edge can only be imported. */
static const LoopNode LOOP[] = {
    {"enter", "Enter", {"start", NULL}, "frame_name"}, {"limit", "Enter", {"hundred", NULL}, "frame_name"},
    {"merge", "Merge", {"enter", "next"}, "N"},        {"less", "Less", {"merge", "limit"}, NULL},
    {"condition", "LoopCond", {"less", NULL}, "none"}, {"switch", "Switch", {"merge", "condition"}, NULL},
    {"turn", "Identity", {"switch:1", NULL}, NULL},    {"body", "AddV2", {"turn", "turn"}, NULL},
    {"next", "NextIteration", {"body", NULL}, NULL},   {"result", "Exit", {"switch", NULL}, NULL},
};

static void add_attr(Message* node, const char* name, int field, const void* text, int64_t number) {
    Message value = {0}, entry = {0};
    if (text)
        message_text(&value, field, text);
    else
        message_int(&value, field, number);
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

/* An endless v1 loop is as good as any; here a While that never ends, with a deadline of a second. */
static void endless_loop(void) {
    TF_Graph *test = TF_NewGraph(), *body = TF_NewGraph();
    TF_Output i = placeholder(test, "i", TF_INT32), k = placeholder(body, "k", TF_INT32);
    TF_Output yes = binary(test, "GreaterEqual", "yes", i, int_constant(test, "zero", 0)),
              same = unary(body, "Abs", "same", k);
    TF_Function* condition =
        TF_GraphToFunction(test, "condition", 0, -1, NULL, 1, &i, 1, &yes, NULL, NULL, NULL, fresh(status));
    TF_Function* turn = TF_GraphToFunction(body, "turn", 0, -1, NULL, 1, &k, 1, &same, NULL, NULL, NULL, fresh(status));
    TF_GraphCopyFunction(graph, condition, NULL, fresh(status));
    TF_GraphCopyFunction(graph, turn, NULL, fresh(status));
    TF_Output x = placeholder(graph, "x", TF_INT32);
    TF_OperationDescription* description = TF_NewOperation(graph, "While", "loop");
    TF_AddInputList(description, &x, 1);
    TF_SetAttrFuncName(description, "cond", "condition", 9);
    TF_SetAttrFuncName(description, "body", "turn", 4);
    TF_Output loop = finish(description);
    TF_Buffer* options = TF_NewBufferFromString("\x10\xe8\x07", 3); /* timeout_in_ms: 1000 */
    TF_Tensor *feed = int_scalar(1), *result = NULL;
    double start = seconds();
    TF_SessionRun(session, options, &x, &feed, 1, &loop, &result, 1, NULL, 0, NULL, fresh(status));
    double taken = seconds() - start;
    print_status("endless", status);
    printf("after about a second: %d\n", taken > 0.8 && taken < 3.0);
    TF_DeleteTensor(feed);
    TF_DeleteBuffer(options);
    run_and_print("next run", session, x, int_scalar(-1), loop, NULL);
    TF_DeleteFunction(condition);
    TF_DeleteFunction(turn);
    TF_DeleteGraph(test);
    TF_DeleteGraph(body);
}

static void enqueue_many_with_a_deadline(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "FIFOQueueV2", "q");
    const TF_DataType types[] = {TF_INT32};
    const int64_t* dims[] = {NULL};
    const int ranks[] = {0};
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_SetAttrShapeList(description, "shapes", dims, ranks, 1);
    TF_SetAttrInt(description, "capacity", 50);
    TF_Output handle = finish(description), values = placeholder(graph, "values", TF_INT32);
    description = TF_NewOperation(graph, "QueueEnqueueManyV2", "enqueue");
    TF_AddInput(description, handle);
    TF_AddInputList(description, &values, 1);
    TF_Output enqueue = finish(description);
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, "\x58\xe0\xd4\x03", 4, fresh(status)); /* operation_timeout_in_ms: 60000 */
    TF_Session* own = TF_NewSession(graph, options, fresh(status));
    const int32_t pair[] = {1, 2};
    double start = seconds();
    for (int i = 0; i < 5; ++i) run_and_print("enqueue", own, values, int_vector(2, pair), NOTHING, enqueue.oper);
    printf("at once: %d\n", seconds() - start < 5);
    run_and_print("size", own, NOTHING, NULL, unary(graph, "QueueSizeV2", "size", handle), NULL);
    delete_session(own);
    TF_DeleteSessionOptions(options);
}

static void partial_step(const char* what, const char* handle, TF_Output input, float value, TF_Output output) {
    TF_Tensor *feed = float_scalar(value), *result = NULL;
    TF_SessionPRun(session, handle, &input, &feed, 1, &output, &result, 1, NULL, 0, fresh(status));
    print_status(what, status);
    print_tensor(what, result);
    TF_DeleteTensor(feed);
    TF_DeleteTensor(result);
}

static void partial_run(void) {
    TF_Output a = placeholder(graph, "a", TF_FLOAT), b = placeholder(graph, "b", TF_FLOAT);
    TF_Output two = float_constant(graph, "two", 2), plus2 = binary(graph, "AddV2", "plus2", a, two);
    TF_Output plusb = binary(graph, "AddV2", "plusb", plus2, b);
    const TF_Output feeds[] = {a, b}, fetches[] = {plus2, plusb};
    for (int i = 0; i < 2; ++i) {
        const char* handle = NULL;
        TF_SessionPRunSetup(session, feeds, 2, fetches, 2, NULL, 0, &handle, fresh(status));
        print_status("setup", status);
        if (!handle) return;
        partial_step("first", handle, a, 1, plus2);
        partial_step("second", handle, b, 4, plusb);
        partial_step("once more", handle, b, 4, plusb);
        TF_DeletePRunHandle(handle);
    }
    const char* handle = NULL;
    TF_SessionPRunSetup(session, feeds, 2, fetches, 2, NULL, 0, &handle, fresh(status));
    partial_step("not yet possible", handle, b, 4, plusb);
    TF_DeletePRunHandle(handle);
    partial_step("no such handle", "nonsense", a, 1, plus2);
}

IN_NEW_SESSION(two_sessions)
IN_NEW_SESSION(reference_variable)
IN_NEW_SESSION(queue)
IN_NEW_SESSION(tensor_array)
IN_NEW_SESSION(queue_with_rest)
IN_NEW_SESSION(padding_queue)
IN_NEW_SESSION(priority_queue)
IN_NEW_SESSION(shuffling_queue)
IN_NEW_SESSION(deadline)
IN_NEW_SESSION(table)
IN_NEW_SESSION(loop_of_version_1)
IN_NEW_SESSION(switch_and_merge)
IN_NEW_SESSION(endless_loop)
IN_NEW_SESSION(enqueue_many_with_a_deadline)
IN_NEW_SESSION(partial_run)

static const Case CASES[] = {
    CASE(two_sessions),
    CASE(reference_variable),
    CASE(queue),
    CASE(tensor_array),
    CASE(queue_with_rest),
    CASE(padding_queue),
    CASE(priority_queue),
    CASE(shuffling_queue),
    CASE(deadline),
    CASE(table),
    CASE(loop_of_version_1),
    CASE(switch_and_merge),
    CASE(endless_loop),
    CASE(enqueue_many_with_a_deadline),
    CASE(partial_run),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
