/* Thousands of steps at once: runs while the graph grows, queue runners that a close with cancellation ends, sessions closed
 * under loops and blocked dequeues, deadlines that leave no waiter behind. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"

enum { RUNNERS = 8, RUNS = 2000, GROWN = 1000, PRODUCERS = 3, CONSUMERS = 3, MAX_ELEMENTS = 100000, ROUNDS = 25, LATE = 300 };

static void pause_milliseconds(int count) {
    const struct timespec time = {0, count * 1000000L};
    nanosleep(&time, NULL);
}

/* Fetches one output with one feed, which is deleted; the result is the caller's. */
static TF_Tensor* step(TF_Session* used, TF_Output input, TF_Tensor* feed, TF_Output output, TF_Status* own) {
    TF_Tensor* result = NULL;
    TF_SessionRun(used, NULL, &input, &feed, feed ? 1 : 0, &output, &result, 1, NULL, 0, NULL, fresh(own));
    TF_DeleteTensor(feed);
    return result;
}

static TF_Output x, y;

static void* run_often(void* seed) {
    TF_Status* own = TF_NewStatus();
    long wrong = 0;
    for (int i = 0; i < RUNS; ++i) {
        float value = (float)((intptr_t)seed * 31 + i % 97);
        TF_Tensor* result = step(session, x, float_scalar(value), y, own);
        wrong += !result || *(const float*)TF_TensorData(result) != value * value + value;
        TF_DeleteTensor(result);
    }
    TF_DeleteStatus(own);
    return (void*)wrong;
}

/* Adds operations and, now and then, runs the one added last: the session then takes in what is new. */
static void* grow_and_run(void* unused) {
    (void)unused;
    TF_Status* own = TF_NewStatus();
    long wrong = 0;
    TF_Output last = x;
    for (int i = 0; i < GROWN; ++i) {
        char name[32];
        snprintf(name, sizeof name, "grown_%d", i);
        last = unary(graph, "Neg", name, i % 10 ? last : x);
        if (i % 10 != 9) continue;
        TF_Tensor* result = step(session, x, float_scalar((float)i), last, own);
        wrong += !result || *(const float*)TF_TensorData(result) != (float)i;
        TF_DeleteTensor(result);
    }
    TF_DeleteStatus(own);
    return (void*)wrong;
}

static void runs_while_the_graph_grows(void) {
    x = placeholder(graph, "x", TF_FLOAT);
    y = binary(graph, "AddV2", "sum", binary(graph, "Mul", "square", x, x), x);
    pthread_t threads[RUNNERS + 1];
    pthread_create(&threads[RUNNERS], NULL, grow_and_run, NULL);
    for (int i = 0; i < RUNNERS; ++i) pthread_create(&threads[i], NULL, run_often, (void*)(intptr_t)i);
    long wrong = 0;
    for (int i = 0; i <= RUNNERS; ++i) {
        void* result = NULL;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    printf("%d runs while %d operations were added: %ld wrong\n", RUNNERS * RUNS, GROWN, wrong);
}

/* A queue of int32 with its operations. */
static TF_Output queue, element, dequeue;
static TF_Operation *enqueue, *close_queue;

static void make_queue(TF_Graph* it, int capacity) {
    const TF_DataType types[] = {TF_INT32};
    const int64_t* dims[] = {NULL};
    const int ranks[] = {0};
    TF_OperationDescription* description = TF_NewOperation(it, "FIFOQueueV2", "queue");
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_SetAttrShapeList(description, "shapes", dims, ranks, 1);
    TF_SetAttrInt(description, "capacity", capacity);
    queue = finish(description);
    element = placeholder(it, "element", TF_INT32);
    description = TF_NewOperation(it, "QueueEnqueueV2", "enqueue");
    TF_AddInput(description, queue);
    TF_AddInputList(description, &element, 1);
    enqueue = finish(description).oper;
    description = TF_NewOperation(it, "QueueDequeueV2", "dequeue");
    TF_AddInput(description, queue);
    TF_SetAttrTypeList(description, "component_types", types, 1);
    dequeue = finish(description);
    description = TF_NewOperation(it, "QueueCloseV2", "close");
    TF_AddInput(description, queue);
    TF_SetAttrBool(description, "cancel_pending_enqueues", 1);
    close_queue = finish(description).oper;
}

static unsigned char entered[MAX_ELEMENTS], left[MAX_ELEMENTS];
static int next_element, n_left;

typedef struct {
    TF_Code ended;
} Outcome;

static void* produce(void* outcome) {
    TF_Status* own = TF_NewStatus();
    for (;;) {
        int number = __sync_fetch_and_add(&next_element, 1);
        if (number >= MAX_ELEMENTS) break;
        TF_Tensor* feed = int_scalar(number);
        const TF_Operation* target = enqueue;
        TF_SessionRun(session, NULL, &element, &feed, 1, NULL, NULL, 0, &target, 1, NULL, fresh(own));
        TF_DeleteTensor(feed);
        if (TF_GetCode(own) != TF_OK) break;
        entered[number] = 1;
    }
    ((Outcome*)outcome)->ended = TF_GetCode(own);
    TF_DeleteStatus(own);
    return NULL;
}

static void* consume(void* outcome) {
    TF_Status* own = TF_NewStatus();
    for (;;) {
        TF_Tensor* result = step(session, NOTHING, NULL, dequeue, own);
        if (!result) break;
        int number = *(const int32_t*)TF_TensorData(result);
        if (number >= 0 && number < MAX_ELEMENTS) __sync_fetch_and_add(&left[number], 1);
        __sync_fetch_and_add(&n_left, 1);
        TF_DeleteTensor(result);
    }
    ((Outcome*)outcome)->ended = TF_GetCode(own);
    TF_DeleteStatus(own);
    return NULL;
}

static void* close_later(void* unused) {
    TF_Status* own = TF_NewStatus();
    (void)unused;
    while (__sync_fetch_and_add(&n_left, 0) < 5000) pause_milliseconds(2);
    const TF_Operation* target = close_queue;
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &target, 1, NULL, own);
    long code = TF_GetCode(own);
    TF_DeleteStatus(own);
    return (void*)code;
}

/* Producers and consumers at a small queue, which another thread closes: nothing is lost, nothing comes twice. */
static void queue_runner_that_is_closed(void) {
    make_queue(graph, 7);
    Outcome outcomes[PRODUCERS + CONSUMERS];
    pthread_t threads[PRODUCERS + CONSUMERS], closer;
    for (int i = 0; i < PRODUCERS + CONSUMERS; ++i)
        pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : consume, &outcomes[i]);
    pthread_create(&closer, NULL, close_later, NULL);
    void* closed = NULL;
    pthread_join(closer, &closed);
    printf("closed: %ld\n", (long)closed);
    for (int i = 0; i < PRODUCERS + CONSUMERS; ++i) {
        pthread_join(threads[i], NULL);
        printf("%s ended with %d\n", i < PRODUCERS ? "a producer" : "a consumer", (int)outcomes[i].ended);
    }
    int lost = 0, twice = 0, invented = 0;
    for (int i = 0; i < MAX_ELEMENTS; ++i) {
        lost += entered[i] && !left[i];
        twice += left[i] > 1;
        invented += left[i] && !entered[i];
    }
    printf("at least 5000: %d, lost %d, twice %d, invented %d\n", n_left >= 5000, lost, twice, invented);
}

/* Endless loops of both kinds. */
static TF_Output endless_function_loop(TF_Graph* it) {
    TF_Graph *test = TF_NewGraph(), *body = TF_NewGraph();
    TF_Output i = placeholder(test, "i", TF_INT32), k = placeholder(body, "k", TF_INT32);
    TF_Output yes = binary(test, "GreaterEqual", "yes", i, int_constant(test, "zero", 0)), same = unary(body, "Abs", "same", k);
    TF_Function* functions[] = {
        TF_GraphToFunction(test, "condition", 0, -1, NULL, 1, &i, 1, &yes, NULL, NULL, NULL, fresh(status)),
        TF_GraphToFunction(body, "turn", 0, -1, NULL, 1, &k, 1, &same, NULL, NULL, NULL, fresh(status))};
    for (int n = 0; n < 2; ++n) {
        TF_GraphCopyFunction(it, functions[n], NULL, fresh(status));
        TF_DeleteFunction(functions[n]);
    }
    TF_DeleteGraph(test);
    TF_DeleteGraph(body);
    TF_Output start = int_constant(it, "one", 1);
    TF_OperationDescription* description = TF_NewOperation(it, "While", "loop");
    TF_AddInputList(description, &start, 1);
    TF_SetAttrFuncName(description, "cond", "condition", 9);
    TF_SetAttrFuncName(description, "body", "turn", 4);
    return finish(description);
}

static TF_Output endless_frame_loop(TF_Graph* it) {
    TF_Output start = int_constant(it, "one", 1), result = NOTHING;
    TF_WhileParams params = TF_NewWhile(it, &start, 1, fresh(status));
    TF_Graph *test = params.cond_graph, *body = params.body_graph;
    params.cond_output = binary(test, "GreaterEqual", "yes", params.cond_inputs[0], int_constant(test, "zero", 0));
    params.body_outputs[0] = unary(body, "Abs", "same", params.body_inputs[0]);
    params.name = "loop";
    TF_FinishWhile(&params, fresh(status), &result);
    if (TF_GetCode(status) != TF_OK) print_status("loop", status);
    return result;
}

typedef struct {
    TF_Session* used;
    TF_Output output;
    TF_Code ended;
} Blocked;

static void* block(void* argument) {
    Blocked* blocked = argument;
    TF_Status* own = TF_NewStatus();
    TF_DeleteTensor(step(blocked->used, NOTHING, NULL, blocked->output, own));
    blocked->ended = TF_GetCode(own);
    TF_DeleteStatus(own);
    return NULL;
}

static void close_rounds(const char* what, TF_Output (*make_loop)(TF_Graph*)) {
    int other = 0, slow = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        TF_Graph* it = TF_NewGraph();
        make_queue(it, 5);
        TF_Output outputs[] = {make_loop(it), dequeue};
        TF_Session* own = new_session(it);
        Blocked blocked[4];
        pthread_t threads[4];
        for (int i = 0; i < 4; ++i) {
            blocked[i] = (Blocked){own, outputs[i % 2], TF_OK};
            pthread_create(&threads[i], NULL, block, &blocked[i]);
        }
        pause_milliseconds(round % 5 * 5);
        double start = seconds();
        TF_CloseSession(own, fresh(status));
        if (TF_GetCode(status) != TF_OK) print_status("close", status);
        for (int i = 0; i < 4; ++i) {
            pthread_join(threads[i], NULL);
            other += blocked[i].ended != TF_CANCELLED;
        }
        slow += seconds() - start > 5;
        TF_DeleteSession(own, fresh(status));
        TF_DeleteGraph(it);
    }
    printf("%s: %d rounds, not cancelled %d, slow %d\n", what, ROUNDS, other, slow);
}

static void closed_under_loops(void) {
    close_rounds("functions", endless_function_loop);
    close_rounds("frames", endless_frame_loop);
}

/* Dequeues that give up: each element that comes later is for who asks later. */
static void* give_up(void* number) {
    (void)number;
    TF_Status* own = TF_NewStatus();
    TF_Buffer* options = TF_NewBufferFromString("\x10\x02", 2); /* timeout_in_ms: 2 */
    long other = 0;
    for (int i = 0; i < LATE; ++i) {
        TF_Tensor* result = NULL;
        TF_SessionRun(session, options, NULL, NULL, 0, &dequeue, &result, 1, NULL, 0, NULL, fresh(own));
        other += TF_GetCode(own) != TF_DEADLINE_EXCEEDED;
        TF_DeleteTensor(result);
    }
    TF_DeleteBuffer(options);
    TF_DeleteStatus(own);
    return (void*)other;
}

static void deadlines_leave_no_waiter(void) {
    alarm(60); /* in the reference the last dequeue waits for ever at times */
    make_queue(graph, 5);
    pthread_t threads[4];
    long other = 0;
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, give_up, NULL);
    for (int i = 0; i < 4; ++i) {
        void* result = NULL;
        pthread_join(threads[i], &result);
        other += (long)result;
    }
    printf("%d dequeues, ended otherwise %ld\n", 4 * LATE, other);
    run_and_print("enqueue", session, element, int_scalar(7), NOTHING, enqueue);
    fetch("dequeue", dequeue);
}

IN_NEW_SESSION(runs_while_the_graph_grows)
IN_NEW_SESSION(queue_runner_that_is_closed)
IN_NEW_SESSION(closed_under_loops)
IN_NEW_SESSION(deadlines_leave_no_waiter)

static const Case CASES[] = {
    CASE(runs_while_the_graph_grows),
    CASE(queue_runner_that_is_closed),
    CASE(closed_under_loops),
    CASE(deadlines_leave_no_waiter),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
