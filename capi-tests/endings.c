/* Ends of lives: deletion in every order, closing during runs, many threads that make and delete, memory and threads that
 * do not grow. Ours only. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_experimental.h>
#include <tensorflow/c/kernels_experimental.h>
#include <tensorflow/c/ops.h>

#include "harness/build.h"
#include "harness/expect.h"
#include "harness/harness.h"
#include "harness/in_session.h"

enum { THINGS = 7, THREADS = 64 };

static void pause_briefly(void) {
    const struct timespec time = {0, 200000000};
    nanosleep(&time, NULL);
}

/* Deletes the things of a small program in one order; a result is read at the end. */
static void end_in_order(const int* order) {
    TF_Status* own = TF_NewStatus();
    TF_Graph* it = TF_NewGraph();
    TF_Output x = placeholder(it, "x", TF_FLOAT), y = unary(it, "Neg", "y", x);
    TF_Session *first = new_session(it), *second = new_session(it);
    TF_Tensor *feed = float_scalar(3), *result = NULL, *again = NULL;
    TF_Function* function = TF_GraphToFunction(it, "f", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, own);
    TF_Buffer* def = exported(it);
    TF_SessionRun(first, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, own);
    TF_SessionRun(second, NULL, &x, &feed, 1, &x, &again, 1, NULL, 0, NULL, own);
    for (int i = 0; i < THINGS; ++i) {
        switch (order[i]) {
            case 0: TF_DeleteGraph(it); break;
            case 1: TF_DeleteSession(first, own); break;
            case 2: TF_DeleteSession(second, own); break;
            case 3: TF_DeleteTensor(feed); break;
            case 4: TF_DeleteFunction(function); break;
            case 5: TF_DeleteBuffer(def); break;
            default: TF_DeleteTensor(again);
        }
    }
    EXPECT(result && *(const float*)TF_TensorData(result) == -3);
    TF_DeleteTensor(result);
    EXPECT_CODE(own, TF_OK);
    TF_DeleteStatus(own);
}

static void permute(int* order, int fixed) {
    if (fixed == THINGS) end_in_order(order);
    for (int i = fixed; i < THINGS; ++i) {
        int other = order[i];
        order[i] = order[fixed], order[fixed] = other;
        permute(order, fixed + 1);
        order[fixed] = order[i], order[i] = other;
    }
}

static void every_order(void) {
    int order[THINGS];
    for (int i = 0; i < THINGS; ++i) order[i] = i;
    permute(order, 0);
}

/* A session goes on when its graph is deleted. */
static void graph_first(void) {
    TF_Graph* it = TF_NewGraph();
    TF_Output x = placeholder(it, "x", TF_FLOAT), y = unary(it, "Neg", "y", x);
    TF_Session* own = new_session(it);
    TF_DeleteGraph(it);
    for (int i = 0; i < 3; ++i) {
        TF_Tensor *feed = float_scalar(2), *result = NULL;
        TF_SessionRun(own, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
        EXPECT_CODE(status, TF_OK);
        EXPECT(strcmp(TF_OperationName(y.oper), "y") == 0);
        TF_DeleteTensor(feed);
        TF_DeleteTensor(result);
    }
    delete_session(own);
}

static TF_Output waiting;
static TF_Code ended_with;

static void* wait_for_it(void* used) {
    TF_Status* own = TF_NewStatus();
    TF_Tensor* result = NULL;
    TF_SessionRun(used, NULL, NULL, NULL, 0, &waiting, &result, 1, NULL, 0, NULL, own);
    ended_with = TF_GetCode(own);
    TF_DeleteTensor(result);
    TF_DeleteStatus(own);
    return NULL;
}

static TF_Output empty_queue(TF_Graph* it) {
    TF_DataType type = TF_FLOAT;
    TF_OperationDescription* description = TF_NewOperation(it, "FIFOQueueV2", "queue");
    TF_SetAttrTypeList(description, "component_types", &type, 1);
    TF_Output queue = finish(description);
    description = TF_NewOperation(it, "QueueDequeueV2", "dequeue");
    TF_AddInput(description, queue);
    TF_SetAttrTypeList(description, "component_types", &type, 1);
    return finish(description);
}

/* A thread waits in a run while another closes the session, or deletes it. */
static void close_during_a_run(void) {
    for (int way = 0; way < 3; ++way) {
        TF_Graph* it = TF_NewGraph();
        waiting = empty_queue(it);
        TF_Session* own = new_session(it);
        pthread_t thread;
        pthread_create(&thread, NULL, wait_for_it, own);
        pause_briefly();
        double start = seconds();
        if (way == 2) TF_DeleteGraph(it);
        if (way == 0)
            TF_CloseSession(own, status);
        else
            TF_DeleteSession(own, status);
        EXPECT_CODE(status, TF_OK);
        pthread_join(thread, NULL);
        EXPECT(ended_with == TF_CANCELLED);
        EXPECT(seconds() - start < 5);
        if (way == 0) TF_DeleteSession(own, status);
        if (way != 2) TF_DeleteGraph(it);
    }
}

static TF_Graph* shared;
static int live_round;

static void* live_and_die(void* number) {
    TF_Status* own = TF_NewStatus();
    for (int i = 0; i < 20; ++i) {
        bool is_shared = (intptr_t)number % 2 == 0;
        TF_Graph* it = is_shared ? shared : TF_NewGraph();
        char name[32];
        snprintf(name, sizeof name, "t%d_%d_%d", live_round, (int)(intptr_t)number, i);
        TF_Output one = float_constant(it, name, 1);
        TF_Session* mine = new_session(it);
        try_fetch(mine, one, 10000, own);
        EXPECT_CODE(own, TF_OK);
        if (!is_shared && i % 3 == 0) TF_DeleteGraph(it);
        TF_DeleteSession(mine, own);
        if (!is_shared && i % 3 != 0) TF_DeleteGraph(it);
    }
    TF_DeleteStatus(own);
    return NULL;
}

/* Many threads make and delete sessions; the threads that sessions have go with them. */
static void many_threads(void) {
    shared = TF_NewGraph();
    long threads_before = 0;
    for (live_round = 0; live_round < 3; ++live_round) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, live_and_die, (void*)(intptr_t)i);
        for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
        pause_briefly();
        if (live_round == 0) threads_before = process_number("Threads");
    }
    EXPECT(process_number("Threads") <= threads_before + 1);
    TF_DeleteGraph(shared);
}

static void load_run_close(const char* folder) {
    const char* tags[] = {"serve"};
    TF_Graph* it = TF_NewGraph();
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Buffer* meta = TF_NewBuffer();
    TF_Session* own = TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, it, meta, status);
    EXPECT_CODE(status, TF_OK);
    TF_Output input = {TF_GraphOperationByName(it, "serving_default_image"), 0},
              output = {TF_GraphOperationByName(it, "StatefulPartitionedCall"), 0};
    if (own && EXPECT(input.oper && output.oper)) {
        static const float picture[32 * 32 * 3];
        const int64_t dims[] = {1, 32, 32, 3};
        TF_Tensor *feed = tensor_of(TF_FLOAT, 4, dims, picture), *result = NULL;
        TF_SessionRun(own, NULL, &input, &feed, 1, &output, &result, 1, NULL, 0, NULL, status);
        EXPECT_CODE(status, TF_OK);
        TF_DeleteTensor(feed);
        TF_DeleteTensor(result);
    }
    TF_DeleteSession(own, status);
    TF_DeleteBuffer(meta);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(it);
}

/* A thousand loads of a SavedModel (or as many as --loads says) keep memory flat. */
static int loads = 1000;

static void memory_stays_flat(void) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/patterns_saved_model", data_folder());
    for (int i = 0; i < loads / 5; ++i) load_run_close(folder);
    long before = process_number("VmRSS");
    for (int i = 0; i < loads; ++i) load_run_close(folder);
    long after = process_number("VmRSS");
    printf("%d loads: grown by %s\n", loads, after - before < 8000 ? "less than 8 MB" : "!! more than 8 MB");
    if (after - before >= 8000) printf("!! from %ld kB to %ld kB\n", before, after);
}

static void errors_stay_flat(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    long before = 0;
    for (int i = 0; i < 20000; ++i) {
        if (i == 5000) before = process_number("VmRSS");
        try_fetch(session, x, 0, status);
        TF_SetStatus(status, TF_OK, "");
        TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "n");
        EXPECT(TF_FinishOperation(description, status) == NULL);
        TF_SetStatus(status, TF_OK, "");
        TF_Buffer* broken = TF_NewBufferFromString("\x0a\x05nodes", 7);
        TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
        TF_GraphImportGraphDef(graph, broken, options, status);
        TF_SetStatus(status, TF_OK, "");
        TF_DeleteImportGraphDefOptions(options);
        TF_DeleteBuffer(broken);
    }
    EXPECT(process_number("VmRSS") - before < 4000);
}

/* What the reference does not let threads share, although it says so or could: values of a checkpoint, attributes of a
 * call as bytes. */
enum { READERS = 4, READS = 2000 };
static TF_CheckpointReader* reader;
static const TFE_OpAttrs* attributes;
static size_t attributes_length;

static void* read_shared(void* unused) {
    (void)unused;
    TF_Status* own = TF_NewStatus();
    for (int i = 0; i < READS; ++i) {
        TF_Tensor* value = TF_CheckpointReaderGetTensor(reader, "weights", own);
        EXPECT_CODE(own, TF_OK);
        EXPECT(value && TF_TensorByteSize(value) == 12 && ((const float*)TF_TensorData(value))[2] == 3);
        TF_DeleteTensor(value);
        TF_Buffer* buffer = TF_NewBuffer();
        TFE_OpAttrsSerialize(attributes, buffer, own);
        EXPECT_CODE(own, TF_OK);
        EXPECT(buffer->length == attributes_length);
        TF_DeleteBuffer(buffer);
    }
    TF_DeleteStatus(own);
    return NULL;
}

static void readers(void) {
    static const char* const NAMES[] = {"weights"};
    static const char* const SLICES[] = {""};
    const float values[] = {1, 2, 3};
    TF_Output weights = constant(graph, "weights", float_vector(3, values));
    TF_OperationDescription* description = TF_NewOperation(graph, "SaveV2", "save");
    TF_AddInput(description, constant(graph, "prefix", string_scalar("./readers")));
    TF_AddInput(description, constant(graph, "names", string_vector(1, NAMES)));
    TF_AddInput(description, constant(graph, "slices", string_vector(1, SLICES)));
    TF_AddInputList(description, &weights, 1);
    const TF_Operation* save = finish(description).oper;
    TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &save, 1, NULL, status);
    EXPECT_CODE(status, TF_OK);
    reader = TF_NewCheckpointReader("./readers", status);
    EXPECT_CODE(status, TF_OK);
    TFE_ContextOptions* options = TFE_NewContextOptions();
    TFE_Context* context = TFE_NewContext(options, status);
    TFE_Op* op = TFE_NewOp(context, "Cast", status);
    TFE_OpSetAttrType(op, "DstT", TF_INT32);
    attributes = TFE_OpGetAttrs(op);
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_OpAttrsSerialize(attributes, buffer, status);
    attributes_length = buffer->length;
    EXPECT(attributes_length > 0);
    TF_DeleteBuffer(buffer);
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; ++i) pthread_create(&threads[i], NULL, read_shared, NULL);
    for (int i = 0; i < READERS; ++i) pthread_join(threads[i], NULL);
    TFE_DeleteOp(op);
    TFE_DeleteContext(context);
    TFE_DeleteContextOptions(options);
    TF_DeleteCheckpointReader(reader);
}

/* Work of kernels that goes on after they have returned, or have said that they are done: runs wait for it. */
static int works_ended;

static void* end_work(void* kernel_context) {
    pause_briefly();
    __sync_fetch_and_add(&works_ended, 1);
    TF_DecNumDeferredOps(kernel_context);
    return NULL;
}

static void begin_work(TF_OpKernelContext* kernel_context) {
    TF_Status* outcome = TF_NewStatus();
    TF_Tensor* input = NULL;
    TF_GetInput(kernel_context, 0, &input, outcome);
    TF_SetOutput(kernel_context, 0, input, outcome);
    TF_DeleteTensor(input);
    TF_DeleteStatus(outcome);
    TF_IncNumDeferredOps(kernel_context);
    pthread_t thread;
    pthread_create(&thread, NULL, end_work, kernel_context);
    pthread_detach(thread);
}

static void work_on(void* kernel, TF_OpKernelContext* kernel_context) {
    (void)kernel;
    begin_work(kernel_context);
}

static void work_on_and_be_done(void* kernel, TF_OpKernelContext* kernel_context, TF_AsyncOpKernelDoneCallback* done) {
    (void)kernel;
    begin_work(kernel_context);
    TF_RunAsyncOpKernelDoneCallback(done);
}

static void define_works(const char* op, TF_KernelBuilder* kernel) {
    TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(op);
    TF_OpDefinitionBuilderAddInput(builder, "x: float");
    TF_OpDefinitionBuilderAddOutput(builder, "y: float");
    TF_OpDefinitionBuilderSetIsStateful(builder, true);
    TF_RegisterOpDefinition(builder, status);
    TF_RegisterKernelBuilder(op, kernel, status);
    EXPECT_CODE(status, TF_OK);
}

static void deferred_work(void) {
    TF_SetRequireShapeInferenceFns(graph, false);
    define_works("CapiWorks", TF_NewKernelBuilder("CapiWorks", "CPU", NULL, work_on, NULL));
    define_works("CapiWorksLater", TF_NewAsyncKernelBuilder("CapiWorksLater", "CPU", NULL, work_on_and_be_done, NULL));
    TF_Output x = float_constant(graph, "x", 3), y = unary(graph, "CapiWorks", "y", x);
    TF_Output outputs[] = {y, unary(graph, "CapiWorksLater", "z", y)};
    TF_Tensor* results[2] = {0};
    TF_SessionRun(session, NULL, NULL, NULL, 0, outputs, results, 2, NULL, 0, NULL, fresh(status));
    EXPECT_CODE(status, TF_OK);
    EXPECT(works_ended == 2);
    for (int i = 0; i < 2; ++i) {
        EXPECT(results[i] && *(const float*)TF_TensorData(results[i]) == 3);
        TF_DeleteTensor(results[i]);
    }
}

IN_NEW_SESSION(deferred_work)
IN_NEW_SESSION(readers)
IN_NEW_SESSION(graph_first)
IN_NEW_SESSION(close_during_a_run)
IN_NEW_SESSION(memory_stays_flat)
IN_NEW_SESSION(errors_stay_flat)

static const Case CASES[] = {
    {"every_order", every_order}, CASE(graph_first), CASE(readers), CASE(close_during_a_run), {"many_threads", many_threads},
    CASE(memory_stays_flat), CASE(errors_stay_flat), CASE(deferred_work),
};

int main(int argc, char** argv) {
    int kept = 1;
    for (int i = 1; i < argc; ++i) {
        if (strncmp(argv[i], "--loads=", 8) == 0)
            loads = atoi(argv[i] + 8);
        else
            argv[kept++] = argv[i];
    }
    return run_cases(kept, argv, CASES, N_ELEMENTS(CASES));
}
