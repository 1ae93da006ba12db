/* Executors: in order, of one's own, asynchronous ones and their errors; cancellation managers; one object, many threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tensorflow/c/eager/c_api_experimental.h>
#include <time.h>

#include "harness/eager.h"
#include "harness/harness.h"

static void executors(void) {
    begin_eager(false);
    for (int is_async = 0; is_async < 2; ++is_async) {
        TFE_Executor* executor = TFE_NewExecutor(is_async, true, 0);
        printf("async %d\n", TFE_ExecutorIsAsync(executor));
        TFE_ContextSetExecutorForThread(context, executor);
        TFE_Executor* mine = TFE_ContextGetExecutorForThread(context);
        printf("mine is async %d\n", TFE_ExecutorIsAsync(mine));
        TFE_DeleteExecutor(mine);
        TFE_TensorHandle *x = vector(3), *sum = execute_quietly("add", new_op("AddV2", x, x));
        for (int i = 0; i < 10; ++i) {
            TFE_TensorHandle* next = execute_quietly("add", new_op("AddV2", sum, x));
            TFE_DeleteTensorHandle(sum);
            sum = next;
        }
        printf("rank %d\n", TFE_TensorHandleNumDims(sum, status));
        print_handle("sum", sum);
        TFE_ExecutorWaitForAllPendingNodes(executor, status);
        print_status("wait", status);
        TFE_DeleteTensorHandle(sum);
        TFE_DeleteTensorHandle(x);
        TFE_DeleteExecutor(executor);
        mine = TFE_ContextGetExecutorForThread(context);
        printf("after the deletion %d\n", TFE_ExecutorIsAsync(mine));
        TFE_DeleteExecutor(mine);
    }
    end_eager();
}

/* An error is found when the op runs, stays until it is cleared, and is that of what depends on it. */
static void asynchronous_errors(void) {
    begin_eager(false);
    TFE_Executor* executor = TFE_NewExecutor(true, true, 0);
    TFE_ContextSetExecutorForThread(context, executor);
    TFE_TensorHandle *two = vector(2), *three = vector(3), *broken = NULL;
    TFE_Op* op = new_op("AddV2", two, three);
    int count = 1;
    TFE_Execute(op, &broken, &count, fresh(status));
    print_status("two and three", status);
    TFE_DeleteOp(op);
    TFE_ExecutorWaitForAllPendingNodes(executor, fresh(status));
    print_status("wait", status);
    print_handle("broken", broken);
    TFE_TensorHandleGetStatus(broken, fresh(status));
    print_status("its status", status);
    printf("rank %d\n", TFE_TensorHandleNumDims(broken, fresh(status)));
    print_status("rank", status);
    printf("type %d\n", TFE_TensorHandleDataType(broken));
    execute("with an error pending", new_op("AddV2", two, two));
    TFE_ExecutorClearError(executor);
    TFE_ExecutorWaitForAllPendingNodes(executor, fresh(status));
    print_status("wait", status);
    TFE_DeleteTensorHandle(execute("cleared", new_op("AddV2", two, two)));
    op = new_op("AddV2", broken, two);
    TFE_TensorHandle* next = NULL;
    count = 1;
    TFE_Execute(op, &next, &count, fresh(status));
    print_status("of what is broken", status);
    TFE_DeleteOp(op);
    TFE_ExecutorWaitForAllPendingNodes(executor, fresh(status));
    print_status("wait", status);
    if (next) TFE_DeleteTensorHandle(next);
    TFE_ExecutorClearError(executor);
    TFE_DeleteTensorHandle(broken);
    TFE_DeleteTensorHandle(two);
    TFE_DeleteTensorHandle(three);
    TFE_DeleteExecutor(executor);
    end_eager();
}

/* What is wrong with the call itself is found at once. */
static void immediate_errors(void) {
    begin_eager(true);
    TFE_TensorHandle *x = vector(2), *doubles = of_type(TF_DOUBLE, 2);
    execute("types", new_op("AddV2", x, doubles));
    execute("too few", new_op("AddV2", x, NULL));
    TFE_Op* op = new_op("AddV2", x, x);
    TFE_OpSetDevice(op, "/device:GPU:0", fresh(status));
    execute("no such device", op);
    execute("good", new_op("AddV2", x, x));
    TFE_ContextAsyncWait(context, fresh(status));
    print_status("wait", status);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(doubles);
    end_eager();
}

static void asynchronous_context(void) {
    begin_eager(true);
    TFE_Executor* mine = TFE_ContextGetExecutorForThread(context);
    printf("async %d\n", TFE_ExecutorIsAsync(mine));
    TFE_TensorHandle* x = vector(4);
    TFE_TensorHandle* y = execute_quietly("mul", new_op("Mul", x, x));
    printf("type %d, device %s\n", TFE_TensorHandleDataType(y), TFE_TensorHandleDeviceName(y, fresh(status)));
    printf("elements %lld, dim %lld\n", (long long)TFE_TensorHandleNumElements(y, fresh(status)),
           (long long)TFE_TensorHandleDim(y, 0, fresh(status)));
    TFE_TensorHandle* copy = TFE_TensorHandleCopySharingTensor(y, fresh(status));
    print_handle("copy", copy);
    TFE_TensorHandle* moved = TFE_TensorHandleCopyToDevice(y, context, "CPU:0", fresh(status));
    print_status("to a device", status);
    print_handle("moved", moved);
    TFE_DeleteTensorHandle(execute("sum", new_op("AddV2", y, copy)));
    TFE_ContextAsyncWait(context, fresh(status));
    print_status("wait", status);
    TFE_ExecutorWaitForAllPendingNodes(mine, fresh(status));
    print_status("wait", status);
    TFE_DeleteExecutor(mine);
    TFE_DeleteTensorHandle(moved);
    TFE_DeleteTensorHandle(copy);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(y);
    end_eager();
}

/* Deleting a context or an executor with work pending ends the work first. */
static void pending_at_the_end(void) {
    for (int of_context = 0; of_context < 2; ++of_context) {
        begin_eager(of_context);
        TFE_Executor* executor = NULL;
        if (!of_context) {
            executor = TFE_NewExecutor(true, true, 0);
            TFE_ContextSetExecutorForThread(context, executor);
        }
        const int64_t dims[] = {200, 200};
        TFE_TensorHandle *x = floats(2, dims), *y = TFE_TensorHandleCopySharingTensor(x, status);
        for (int i = 0; i < 30; ++i) {
            TFE_TensorHandle* next = execute_quietly("matmul", new_op("MatMul", y, x));
            TFE_DeleteTensorHandle(y);
            y = next;
        }
        TFE_DeleteTensorHandle(x);
        TFE_DeleteExecutor(executor);
        if (!of_context) printf("elements %lld\n", (long long)TFE_TensorHandleNumElements(y, fresh(status)));
        TFE_DeleteTensorHandle(y);
        end_eager();
    }
}

/* A dequeue waits on one executor while another one enqueues. */
static void two_executors(void) {
    begin_eager(false);
    TFE_Op* op = new_op("FIFOQueueV2", NULL, NULL);
    const TF_DataType types[] = {TF_FLOAT};
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    TFE_OpSetAttrString(op, "shared_name", "q", 1);
    TFE_TensorHandle *queue = execute_quietly("queue", op), *x = vector(2);
    TFE_Executor *usual = TFE_ContextGetExecutorForThread(context), *waiting = TFE_NewExecutor(true, true, 0);
    TFE_ContextSetExecutorForThread(context, waiting);
    op = new_op("QueueDequeueV2", queue, NULL);
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    TFE_TensorHandle* out = execute_quietly("dequeue", op);
    TFE_ContextSetExecutorForThread(context, usual);
    op = new_op("QueueEnqueueV2", queue, NULL);
    TFE_OpAddInputList(op, &x, 1, status);
    execute_quietly("enqueue", op);
    print_handle("out", out);
    TFE_ExecutorWaitForAllPendingNodes(waiting, fresh(status));
    print_status("wait", status);
    TFE_DeleteTensorHandle(out);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(queue);
    TFE_DeleteExecutor(waiting);
    TFE_DeleteExecutor(usual);
    end_eager();
}

static void say(void* what) { printf("called back: %s\n", (const char*)what); }

static void cancellation(void) {
    begin_eager(false);
    TFE_CancellationManager* manager = TFE_NewCancellationManager();
    printf("cancelled %d %d\n", TFE_CancellationManagerIsCancelled(manager), TFE_CancellationManagerIsCancelling(manager));
    TFE_CancellationToken first = TFE_CancellationManagerGetToken(manager), second = TFE_CancellationManagerGetToken(manager);
    printf("tokens %lld %lld\n", (long long)first, (long long)second);
    TFE_CancellationToken third = TFE_CancellationManagerGetToken(manager);
    TFE_CancelCallback callback = {say, (void*)"first"};
    printf("registered %d\n", TFE_CancellationManagerRegisterCallback(manager, first, &callback, "one"));
    callback.context = (void*)"second";
    printf("registered %d\n", TFE_CancellationManagerRegisterCallback(manager, second, &callback, "two"));
    callback.context = (void*)"third";
    printf("registered %d\n", TFE_CancellationManagerRegisterCallback(manager, third, &callback, "three"));
    printf("deregistered %d\n", TFE_CancellationManagerDeregisterCallback(manager, first));
    printf("tried %d\n", TFE_CancellationManagerTryDeregisterCallback(manager, third));
    printf("unknown %d\n", TFE_CancellationManagerDeregisterCallback(manager, 1000));
    TFE_CancellationManagerStartCancel(manager);
    printf("cancelled %d %d\n", TFE_CancellationManagerIsCancelled(manager), TFE_CancellationManagerIsCancelling(manager));
    printf("deregistered %d\n", TFE_CancellationManagerDeregisterCallback(manager, second));
    printf("tried %d\n", TFE_CancellationManagerTryDeregisterCallback(manager, second));
    printf("registered %d\n",
           TFE_CancellationManagerRegisterCallback(manager, TFE_CancellationManagerGetToken(manager), &callback, "late"));
    TFE_CancellationManagerStartCancel(manager);
    TFE_DeleteCancellationManager(manager);
    end_eager();
}

static void* cancel_soon(void* manager) {
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    TFE_CancellationManagerStartCancel(manager);
    return NULL;
}

static void cancelled_ops(void) {
    begin_eager(false);
    TFE_Op* op = new_op("FIFOQueueV2", NULL, NULL);
    const TF_DataType types[] = {TF_FLOAT};
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    TFE_OpSetAttrString(op, "shared_name", "q", 1);
    TFE_TensorHandle *queue = execute_quietly("queue", op), *x = vector(2);
    TFE_CancellationManager* manager = TFE_NewCancellationManager();
    op = new_op("AddV2", x, x);
    TFE_OpSetCancellationManager(op, manager, fresh(status));
    print_status("set", status);
    TFE_DeleteTensorHandle(execute("not cancelled", op));
    op = new_op("QueueDequeueV2", queue, NULL);
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    TFE_OpSetCancellationManager(op, manager, fresh(status));
    pthread_t canceller;
    pthread_create(&canceller, NULL, cancel_soon, manager);
    TFE_TensorHandle* none = NULL;
    int count = 1;
    TFE_Execute(op, &none, &count, fresh(status));
    print_status("dequeue", status);
    TFE_DeleteOp(op);
    pthread_join(canceller, NULL);
    op = new_op("QueueSizeV2", queue, NULL);
    TFE_DeleteTensorHandle(execute("the queue lives", op));
    op = new_op("QueueDequeueV2", queue, NULL);
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    TFE_OpSetCancellationManager(op, manager, fresh(status));
    TFE_Execute(op, &none, &count, fresh(status));
    print_status("cancelled before", status);
    TFE_DeleteOp(op);
    TFE_DeleteCancellationManager(manager);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteTensorHandle(queue);
    end_eager();
}

/* Two threads on one context, one executor and one handle. */
static TFE_Executor* shared_executor;

static void* use_executor(void* argument) {
    TFE_TensorHandle* x = argument;
    TF_Status* mine = TF_NewStatus();
    float* last = malloc(sizeof(float));
    TFE_Executor* usual = TFE_ContextGetExecutorForThread(context);
    TFE_ContextSetExecutorForThread(context, shared_executor);
    TFE_TensorHandle* sum = TFE_TensorHandleCopySharingTensor(x, mine);
    for (int i = 0; i < 300; ++i) {
        TFE_Op* op = TFE_NewOp(context, "AddV2", mine);
        TFE_OpAddInput(op, sum, mine);
        TFE_OpAddInput(op, x, mine);
        TFE_TensorHandle* next = NULL;
        int count = 1;
        TFE_Execute(op, &next, &count, mine);
        TFE_DeleteOp(op);
        TFE_DeleteTensorHandle(sum);
        sum = next;
        if (TF_GetCode(mine) != TF_OK) break;
        if (i % 50 == 0) TFE_ExecutorWaitForAllPendingNodes(shared_executor, mine);
    }
    TF_Tensor* tensor = TFE_TensorHandleResolve(sum, mine);
    *last = tensor ? ((float*)TF_TensorData(tensor))[1] : -1;
    TF_DeleteTensor(tensor);
    TFE_DeleteTensorHandle(sum);
    TFE_ContextSetExecutorForThread(context, usual);
    TFE_DeleteExecutor(usual);
    TF_DeleteStatus(mine);
    return last;
}

static void threads(void) {
    begin_eager(false);
    for (int is_async = 0; is_async < 2; ++is_async) {
        shared_executor = TFE_NewExecutor(is_async, true, 8);
        TFE_TensorHandle* x = vector(3);
        pthread_t both[2];
        for (int i = 0; i < 2; ++i) pthread_create(&both[i], NULL, use_executor, x);
        for (int i = 0; i < 2; ++i) {
            void* last;
            pthread_join(both[i], &last);
            printf("%g\n", *(float*)last);
            free(last);
        }
        TFE_DeleteTensorHandle(x);
        TFE_DeleteExecutor(shared_executor);
    }
    end_eager();
}

static int calls;
static void count_call(void* argument) { __sync_fetch_and_add((int*)argument, 1); }

static void* use_manager(void* manager) {
    for (int i = 0; i < 500; ++i) {
        TFE_CancellationToken token = TFE_CancellationManagerGetToken(manager);
        TFE_CancelCallback callback = {count_call, &calls};
        bool registered = TFE_CancellationManagerRegisterCallback(manager, token, &callback, "call");
        if (i % 2) registered = registered && !TFE_CancellationManagerTryDeregisterCallback(manager, token);
        TFE_CancellationManagerIsCancelled(manager);
    }
    return NULL;
}

static void manager_threads(void) {
    TFE_CancellationManager* manager = TFE_NewCancellationManager();
    pthread_t both[2];
    for (int i = 0; i < 2; ++i) pthread_create(&both[i], NULL, use_manager, manager);
    for (int i = 0; i < 2; ++i) pthread_join(both[i], NULL);
    TFE_CancellationManagerStartCancel(manager);
    printf("%d calls, next token %lld\n", calls, (long long)TFE_CancellationManagerGetToken(manager));
    TFE_DeleteCancellationManager(manager);
}

static const Case CASES[] = {
    {"executors", executors},
    {"asynchronous_errors", asynchronous_errors},
    {"immediate_errors", immediate_errors},
    {"asynchronous_context", asynchronous_context},
    {"pending_at_the_end", pending_at_the_end},
    {"two_executors", two_executors},
    {"cancellation", cancellation},
    {"cancelled_ops", cancelled_ops},
    {"threads", threads},
    {"manager_threads", manager_threads},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
