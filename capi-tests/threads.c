/* Many threads: runs on one session, sessions on one graph, building while running; memory that stays flat. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"

enum { THREADS = 16, RUNS = 1000, SESSIONS = 50 };

static TF_Graph* graph;
static TF_Session* session;
static TF_Output x, y;

/* Runs y = relu(x * x + x) `count` times with other values each time; returns how many results are wrong. */
static long run_many(TF_Session* used, int seed, int count) {
    TF_Status* status = TF_NewStatus();
    long wrong = 0;
    for (int i = 0; i < count; ++i) {
        float value = (float)(seed * 31 + i % 97), expected = value * value + value;
        TF_Tensor *feed = float_scalar(value), *result = NULL;
        TF_SessionRun(used, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
        if (TF_GetCode(status) != TF_OK || !result || *(const float*)TF_TensorData(result) != expected) ++wrong;
        TF_DeleteTensor(feed);
        TF_DeleteTensor(result);
    }
    TF_DeleteStatus(status);
    return wrong;
}

static void build(void) {
    graph = TF_NewGraph();
    x = placeholder(graph, "x", TF_FLOAT);
    y = unary(graph, "Relu", "y", binary(graph, "AddV2", "sum", binary(graph, "Mul", "square", x, x), x));
}

static void* run_shared(void* seed) { return (void*)run_many(session, (int)(intptr_t)seed, RUNS); }

static void* run_own(void* seed) {
    TF_Session* own = new_session(graph);
    long wrong = run_many(own, (int)(intptr_t)seed, RUNS / 10);
    delete_session(own);
    return (void*)wrong;
}

static void in_threads(const char* what, void* (*body)(void*), int count) {
    pthread_t threads[SESSIONS];
    long wrong = 0;
    for (int i = 0; i < count; ++i) pthread_create(&threads[i], NULL, body, (void*)(intptr_t)i);
    for (int i = 0; i < count; ++i) {
        void* result = NULL;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    printf("%s: %ld wrong\n", what, wrong);
}

static void one_session(void) {
    build();
    session = new_session(graph);
    in_threads("16 threads, one session", run_shared, THREADS);
    delete_session(session);
    TF_DeleteGraph(graph);
}

static void many_sessions(void) {
    build();
    in_threads("50 threads, a session each", run_own, SESSIONS);
    TF_Session* sessions[SESSIONS];
    for (int i = 0; i < SESSIONS; ++i) sessions[i] = new_session(graph);
    long wrong = 0;
    for (int i = 0; i < SESSIONS; ++i) wrong += run_many(sessions[i], i, 10);
    for (int i = 0; i < SESSIONS; ++i) delete_session(sessions[i]);
    printf("50 sessions in turn: %ld wrong\n", wrong);
    TF_DeleteGraph(graph);
}

static void* build_more(void* seed) {
    long wrong = 0;
    for (int i = 0; i < 200; ++i) {
        char name[64];
        snprintf(name, sizeof name, "extra_%d_%d", (int)(intptr_t)seed, i);
        TF_OperationDescription* description = TF_NewOperation(graph, "Neg", name);
        TF_AddInput(description, x);
        wrong += finish(description).oper == NULL;
        wrong += TF_GraphOperationByName(graph, name) == NULL;
    }
    return (void*)wrong;
}

static void* build_or_run(void* seed) { return (intptr_t)seed % 2 ? build_more(seed) : run_shared(seed); }

static void building_while_running(void) {
    build();
    session = new_session(graph);
    in_threads("4 build, 4 run", build_or_run, 8);
    delete_session(session);
    TF_DeleteGraph(graph);
}

static long resident_pages(void) {
    long pages = 0, ignored = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &ignored, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return pages;
}

static void memory_of_runs(void) {
    build();
    session = new_session(graph);
    run_many(session, 1, 5000);
    long before = resident_pages();
    run_many(session, 1, 20000);
    printf("grew by more than 4 MB: %d\n", resident_pages() - before > 1024);
    delete_session(session);
    TF_DeleteGraph(graph);
}

static void memory_of_sessions(void) {
    for (int i = 0; i < 20; ++i) {
        build();
        session = new_session(graph);
        run_many(session, 1, 2);
        delete_session(session);
        TF_DeleteGraph(graph);
    }
    long before = resident_pages();
    for (int i = 0; i < 200; ++i) {
        build();
        session = new_session(graph);
        run_many(session, 1, 2);
        delete_session(session);
        TF_DeleteGraph(graph);
    }
    printf("grew by more than 8 MB: %d\n", resident_pages() - before > 2048);
}

static const Case CASES[] = {
    {"one_session", one_session},
    {"many_sessions", many_sessions},
    {"building_while_running", building_while_running},
    {"memory_of_runs", memory_of_runs},
    {"memory_of_sessions", memory_of_sessions},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
