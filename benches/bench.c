/* Measures a TensorFlow library through its C API. The library is loaded by path, so one program serves all of them.
 *
 *   bench LIBRARY start         fresh process: dlopen, first session, first run of a one-op graph; memory
 *   bench LIBRARY steady        the other figures, in one process
 *   bench LIBRARY executor      loops, queues, transfers, branches, sessions
 *
 * Prints lines of "name value unit"; tools/bench.py runs two libraries in turns and compares. */
#define _GNU_SOURCE
#include "bench.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES = 10000, BUILDS = 5, IMPORTS = 5, RUNS = 20000, CHAIN_RUNS = 20 };

struct library tf;
TF_Status* status;

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void* symbol(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "the library has no %s\n", name);
        exit(1);
    }
    return found;
}

static void load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND(name) *(void**)&tf.name = symbol(library, #name);
    FUNCTIONS(FIND)
#undef FIND
    status = tf.TF_NewStatus();
}

void check(const char* what) {
    if (tf.TF_GetCode(status) == TF_OK) return;
    fprintf(stderr, "%s: %s\n", what, tf.TF_Message(status));
    exit(1);
}

/* A number of kilobytes from /proc/self/status. */
double process_megabytes(const char* field) {
    char line[256];
    double kilobytes = 0;
    FILE* file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, field, strlen(field)) == 0) kilobytes = atof(line + strlen(field) + 1);
    }
    if (file) fclose(file);
    return kilobytes / 1024;
}

TF_Output finish(TF_OperationDescription* description) {
    TF_Output output = {tf.TF_FinishOperation(description, status), 0};
    check("operation");
    return output;
}

TF_Tensor* scalar(float value) {
    TF_Tensor* tensor = tf.TF_AllocateTensor(TF_FLOAT, NULL, 0, sizeof value);
    memcpy(tf.TF_TensorData(tensor), &value, sizeof value);
    return tensor;
}

TF_Output placeholder(TF_Graph* graph) {
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "Placeholder", "x");
    tf.TF_SetAttrType(description, "dtype", TF_FLOAT);
    return finish(description);
}

static TF_Output constant(TF_Graph* graph) {
    TF_Tensor* value = scalar(1);
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "Const", "one");
    tf.TF_SetAttrTensor(description, "value", value, status);
    tf.TF_SetAttrType(description, "dtype", TF_FLOAT);
    tf.TF_DeleteTensor(value);
    return finish(description);
}

TF_Output add(TF_Graph* graph, const char* name, TF_Output a, TF_Output b) {
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "AddV2", name);
    tf.TF_AddInput(description, a);
    tf.TF_AddInput(description, b);
    return finish(description);
}

/* x + x + x + ...; returns the last sum. (With a constant the reference would fold the chain into one addition.) */
TF_Output chain(TF_Graph* graph, int length) {
    TF_Output x = placeholder(graph), sum = x;
    for (int i = 0; i < length; ++i) {
        char name[32];
        snprintf(name, sizeof name, "add_%d", i);
        sum = add(graph, name, sum, x);
    }
    return sum;
}

static TF_Session* new_session(TF_Graph* graph) {
    TF_SessionOptions* options = tf.TF_NewSessionOptions();
    TF_Session* session = tf.TF_NewSession(graph, options, status);
    check("session");
    tf.TF_DeleteSessionOptions(options);
    return session;
}

/* Runs once and checks the result. */
static void run(TF_Session* session, TF_Output x, TF_Tensor* feed, TF_Output y, float expected) {
    TF_Tensor* result = NULL;
    tf.TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    check("run");
    float value = *(const float*)tf.TF_TensorData(result);
    if (value != expected) {
        fprintf(stderr, "the result is %g, not %g\n", value, expected);
        exit(1);
    }
    tf.TF_DeleteTensor(result);
}

static void measure_start(const char* path) {
    double before = process_megabytes("VmRSS:"), start = seconds();
    load(path);
    double loaded = seconds();
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Output x = placeholder(graph), y = add(graph, "y", x, x);
    TF_Session* session = new_session(graph);
    run(session, x, scalar(2), y, 4);
    double done = seconds();
    printf("dlopen %.3f ms\n", (loaded - start) * 1e3);
    printf("start %.3f ms\n", (done - start) * 1e3);
    printf("start_memory %.1f MB\n", process_megabytes("VmRSS:") - before);
}

static void measure_building(void) {
    double best = 1e9;
    for (int i = 0; i < BUILDS; ++i) {
        TF_Graph* graph = tf.TF_NewGraph();
        double start = seconds();
        chain(graph, NODES);
        double taken = seconds() - start;
        if (taken < best) best = taken;
        tf.TF_DeleteGraph(graph);
    }
    printf("build_op %.3f us\n", best / NODES * 1e6);
}

static void measure_import(void) {
    TF_Graph* graph = tf.TF_NewGraph();
    chain(graph, NODES);
    TF_Buffer* buffer = tf.TF_NewBuffer();
    tf.TF_GraphToGraphDef(graph, buffer, status);
    check("export");
    tf.TF_DeleteGraph(graph);
    TF_ImportGraphDefOptions* options = tf.TF_NewImportGraphDefOptions();
    double best = 1e9;
    for (int i = 0; i < IMPORTS; ++i) {
        TF_Graph* copy = tf.TF_NewGraph();
        double start = seconds();
        tf.TF_GraphImportGraphDef(copy, buffer, options, status);
        double taken = seconds() - start;
        check("import");
        if (taken < best) best = taken;
        tf.TF_DeleteGraph(copy);
    }
    tf.TF_DeleteImportGraphDefOptions(options);
    tf.TF_DeleteBuffer(buffer);
    printf("import_10000 %.3f ms\n", best * 1e3);
}

static void measure_small_run(void) {
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Output x = placeholder(graph), y = add(graph, "y", x, constant(graph));
    TF_Session* session = new_session(graph);
    TF_Tensor* feed = scalar(2);
    for (int i = 0; i < 1000; ++i) run(session, x, feed, y, 3);
    double start = seconds();
    for (int i = 0; i < RUNS; ++i) run(session, x, feed, y, 3);
    printf("run_add %.3f us\n", (seconds() - start) / RUNS * 1e6);
    tf.TF_DeleteTensor(feed);
    tf.TF_DeleteSession(session, status);
    tf.TF_DeleteGraph(graph);
}

static void measure_chain(void) {
    TF_Graph* graph = tf.TF_NewGraph();
    TF_Output y = chain(graph, NODES), x = {tf.TF_GraphOperationByName(graph, "x"), 0};
    TF_Session* session = new_session(graph);
    TF_Tensor* feed = scalar(1);
    double start = seconds();
    run(session, x, feed, y, NODES + 1);
    printf("first_run_10000 %.3f ms\n", (seconds() - start) * 1e3);
    start = seconds();
    for (int i = 0; i < CHAIN_RUNS; ++i) run(session, x, feed, y, NODES + 1);
    printf("chain_op %.1f ns\n", (seconds() - start) / CHAIN_RUNS / NODES * 1e9);
    tf.TF_DeleteTensor(feed);
    tf.TF_DeleteSession(session, status);
    tf.TF_DeleteGraph(graph);
}

int main(int argc, char** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: bench LIBRARY start|steady|executor\n");
        return 1;
    }
    if (strcmp(argv[2], "start") == 0) {
        measure_start(argv[1]);
        return 0;
    }
    load(argv[1]);
    if (strcmp(argv[2], "executor") == 0) {
        measure_executor();
        return 0;
    }
    measure_building();
    measure_import();
    measure_small_run();
    measure_chain();
    measure_eager();
    return 0;
}
