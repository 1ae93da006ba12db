/* Measures what the executor does beyond running one operation after the other. */
#include "bench.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 10000, PAIRS = 100, PAIR_RUNS = 200, SESSIONS = 1000, HOPS = 1000, HOP_RUNS = 50, SIZE = 512 };

/* Serialized ConfigProtos. */
static const char ONE_THREAD[] = {0x10, 1, 0x28, 1};
static const char TWO_BRANCHES[] = {0x10, 1, 0x28, 2};
static const char TWO_DEVICES[] = {0x0A, 7, 0x0A, 3, 'C', 'P', 'U', 0x10, 2, 0x10, 1, 0x28, 1};

static TF_Session* configured_session(TF_Graph* graph, const char* config, size_t length) {
    TF_SessionOptions* options = tf.TF_NewSessionOptions();
    if (config) tf.TF_SetConfig(options, config, length, status);
    check("config");
    TF_Session* session = tf.TF_NewSession(graph, options, status);
    check("session");
    tf.TF_DeleteSessionOptions(options);
    return session;
}

/* Runs an operation, and fetches from it unless it has no outputs. */
static void step(TF_Session* session, TF_Output* feed, TF_Tensor* value, TF_Output fetch, const TF_Operation* target) {
    TF_Tensor* result = NULL;
    tf.TF_SessionRun(session, NULL, feed, &value, feed ? 1 : 0, &fetch, &result, target ? 0 : 1, &target,
                     target ? 1 : 0, NULL, status);
    check("run");
    if (result) tf.TF_DeleteTensor(result);
}

static double best_of(int count, TF_Session* session, TF_Output* feed, TF_Tensor* value, TF_Output fetch,
                      const TF_Operation* target) {
    double best = 1e9;
    for (int i = 0; i < count; ++i) {
        double start = seconds();
        step(session, feed, value, fetch, target);
        double taken = seconds() - start;
        if (taken < best) best = taken;
    }
    return best;
}

static TF_Output number(TF_Graph* graph, const char* name, int32_t value) {
    TF_Tensor* tensor = tf.TF_AllocateTensor(TF_INT32, NULL, 0, sizeof value);
    memcpy(tf.TF_TensorData(tensor), &value, sizeof value);
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "Const", name);
    tf.TF_SetAttrTensor(description, "value", tensor, status);
    tf.TF_SetAttrType(description, "dtype", TF_INT32);
    tf.TF_DeleteTensor(tensor);
    return finish(description);
}

static TF_Output less(TF_Graph* graph, TF_Output a, TF_Output b) {
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "Less", "less");
    tf.TF_AddInput(description, a);
    tf.TF_AddInput(description, b);
    return finish(description);
}

/* while (i < TURNS) i += 1, as operations of the graph. */
static void measure_v1_while(void) {
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Output zero = number(graph, "zero", 0), last;
    TF_WhileParams loop = tf.TF_NewWhile(graph, &zero, 1, status);
    check("while");
    *(TF_Output*)&loop.cond_output = less(loop.cond_graph, loop.cond_inputs[0], number(loop.cond_graph, "n", TURNS));
    loop.body_outputs[0] = add(loop.body_graph, "next", loop.body_inputs[0], number(loop.body_graph, "one", 1));
    loop.name = "loop";
    tf.TF_FinishWhile(&loop, status, &last);
    check("while");
    TF_Session* session = configured_session(graph, NULL, 0);
    step(session, NULL, NULL, last, NULL);
    printf("v1_while_turn %.4f us\n", best_of(5, session, NULL, NULL, last, NULL) / TURNS * 1e6);
    tf.TF_DeleteSession(session, status);
    tf.TF_DeleteGraph(graph);
}

static TF_Output argument(TF_Graph* graph, TF_DataType type) {
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "Placeholder", "i");
    tf.TF_SetAttrType(description, "dtype", type);
    return finish(description);
}

static void add_function(TF_Graph* graph, TF_Graph* body, const char* name, TF_Output input, TF_Output output) {
    TF_Function* function =
        tf.TF_GraphToFunction(body, name, 0, -1, NULL, 1, &input, 1, &output, NULL, NULL, NULL, status);
    check("function");
    tf.TF_GraphCopyFunction(graph, function, NULL, status);
    check("copy of a function");
    tf.TF_DeleteFunction(function);
    tf.TF_DeleteGraph(body);
}

/* The same by two functions. */
static void measure_functional_while(void) {
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Graph* condition = tf.TF_NewGraph();
    TF_Output i = argument(condition, TF_INT32);
    add_function(graph, condition, "goes_on", i, less(condition, i, number(condition, "n", TURNS)));
    TF_Graph* body = tf.TF_NewGraph();
    i = argument(body, TF_INT32);
    add_function(graph, body, "next", i, add(body, "sum", i, number(body, "one", 1)));
    TF_Output zero = number(graph, "zero", 0);
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "While", "loop");
    tf.TF_AddInputList(description, &zero, 1);
    tf.TF_SetAttrFuncName(description, "cond", "goes_on", strlen("goes_on"));
    tf.TF_SetAttrFuncName(description, "body", "next", strlen("next"));
    TF_Output last = finish(description);
    TF_Session* session = configured_session(graph, NULL, 0);
    step(session, NULL, NULL, last, NULL);
    printf("while_turn %.4f us\n", best_of(5, session, NULL, NULL, last, NULL) / TURNS * 1e6);
    tf.TF_DeleteSession(session, status);
    tf.TF_DeleteGraph(graph);
}

/* Puts a number into a queue and takes it out, again and again in one run. */
static void measure_queue(void) {
    TF_Graph* graph = tf.TF_NewGraph();
    const TF_DataType type = TF_FLOAT;
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "FIFOQueueV2", "queue");
    tf.TF_SetAttrTypeList(description, "component_types", &type, 1);
    TF_Output queue = finish(description), value = placeholder(graph);
    TF_Output feed = value;
    for (int i = 0; i < PAIRS; ++i) {
        char name[32];
        snprintf(name, sizeof name, "put_%d", i);
        description = tf.TF_NewOperation(graph, "QueueEnqueueV2", name);
        tf.TF_AddInput(description, queue);
        tf.TF_AddInputList(description, &value, 1);
        tf.TF_SetAttrTypeList(description, "Tcomponents", &type, 1);
        TF_Output put = finish(description);
        snprintf(name, sizeof name, "take_%d", i);
        description = tf.TF_NewOperation(graph, "QueueDequeueV2", name);
        tf.TF_AddInput(description, queue);
        tf.TF_SetAttrTypeList(description, "component_types", &type, 1);
        tf.TF_AddControlInput(description, put.oper);
        value = finish(description);
    }
    TF_Session* session = configured_session(graph, NULL, 0);
    TF_Tensor* one = scalar(1);
    step(session, &feed, one, value, NULL);
    printf("queue_pair %.4f us\n", best_of(PAIR_RUNS, session, &feed, one, value, NULL) / PAIRS * 1e6);
    tf.TF_DeleteTensor(one);
    tf.TF_DeleteSession(session, status);
    tf.TF_DeleteGraph(graph);
}

/* A chain of sums, each on the device that `devices` names in turn. */
static double hop(const char* const devices[2]) {
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Output x = placeholder(graph), sum = x;
    for (int i = 0; i < HOPS; ++i) {
        char name[32];
        snprintf(name, sizeof name, "hop_%d", i);
        TF_OperationDescription* description = tf.TF_NewOperation(graph, "AddV2", name);
        tf.TF_AddInput(description, sum);
        tf.TF_AddInput(description, sum);
        tf.TF_SetDevice(description, devices[i % 2]);
        sum = finish(description);
    }
    TF_Session* session = configured_session(graph, TWO_DEVICES, sizeof TWO_DEVICES);
    TF_Tensor* one = scalar(0);
    step(session, &x, one, sum, NULL);
    double taken = best_of(HOP_RUNS, session, &x, one, sum, NULL) / HOPS;
    tf.TF_DeleteTensor(one);
    tf.TF_DeleteSession(session, status);
    tf.TF_DeleteGraph(graph);
    return taken;
}

static void measure_transfers(void) {
    static const char* const one[] = {"/cpu:0", "/cpu:0"};
    static const char* const two[] = {"/cpu:0", "/cpu:1"};
    printf("transfer_pair %.4f us\n", (hop(two) - hop(one)) * 1e6);
}

/* Two products of matrices that do not need each other. */
static TF_Output two_products(TF_Graph* graph, TF_Output x) {
    TF_Output products[2];
    for (int i = 0; i < 2; ++i) {
        TF_OperationDescription* description = tf.TF_NewOperation(graph, "MatMul", i ? "right" : "left");
        tf.TF_AddInput(description, x);
        tf.TF_AddInput(description, x);
        if (i) tf.TF_SetAttrBool(description, "transpose_a", 1);
        products[i] = finish(description);
    }
    return add(graph, "sum", products[0], products[1]);
}

static void measure_branches(void) {
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Output x = placeholder(graph), sum = two_products(graph, x);
    const int64_t dims[] = {SIZE, SIZE};
    TF_Tensor* value = tf.TF_AllocateTensor(TF_FLOAT, dims, 2, (size_t)SIZE * SIZE * sizeof(float));
    float* data = tf.TF_TensorData(value);
    for (int i = 0; i < SIZE * SIZE; ++i) data[i] = (float)(i % 7) / 7;
    double taken[2];
    for (int parallel = 0; parallel < 2; ++parallel) {
        TF_Session* session = configured_session(graph, parallel ? TWO_BRANCHES : ONE_THREAD, sizeof ONE_THREAD);
        for (int i = 0; i < 20; ++i) step(session, &x, value, sum, NULL);
        taken[parallel] = best_of(20, session, &x, value, sum, NULL);
        tf.TF_DeleteSession(session, status);
    }
    printf("branches %.3f times\n", taken[0] / taken[1]);
    tf.TF_DeleteTensor(value);
    tf.TF_DeleteGraph(graph);
}

static void measure_sessions(void) {
    static TF_Session* sessions[SESSIONS];
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Output y = chain(graph, 100), x = {tf.TF_GraphOperationByName(graph, "x"), 0};
    TF_Tensor* one = scalar(1);
    double before = process_megabytes("VmRSS:"), start = seconds();
    for (int i = 0; i < SESSIONS; ++i) {
        sessions[i] = configured_session(graph, ONE_THREAD, sizeof ONE_THREAD);
        step(sessions[i], &x, one, y, NULL);
    }
    printf("session %.1f us\n", (seconds() - start) / SESSIONS * 1e6);
    printf("session_memory %.1f KB\n", (process_megabytes("VmRSS:") - before) * 1024 / SESSIONS);
    for (int i = 0; i < SESSIONS; ++i) tf.TF_DeleteSession(sessions[i], status);
    tf.TF_DeleteTensor(one);
    tf.TF_DeleteGraph(graph);
}

void measure_executor(void) {
    measure_v1_while();
    measure_functional_while();
    measure_queue();
    measure_transfers();
    measure_branches();
    measure_sessions();
}
