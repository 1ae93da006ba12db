/* As `sharing`, for the objects of eager execution, of the unified interface and of metrics, and for those of c_api.h that
 * only hold what was said: options, libraries, sessions of the first kind. */
#include <stdio.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_unified_experimental.h>

#include "harness/build.h"
#include "harness/eager.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/share.h"

static TFE_TensorHandle* shared_handle;

static uint64_t hash_of_handle(TFE_TensorHandle* handle, TF_Status* result) {
    uint64_t hash = handle ? hash_of_tensor(TFE_TensorHandleResolve(handle, result)) : 0;
    if (handle) TFE_DeleteTensorHandle(handle);
    return hash;
}

static uint64_t call(const char* name, TF_Status* result) {
    TFE_Op* op = TFE_NewOp(context, name, result);
    if (!op) return 0;
    TFE_OpAddInput(op, shared_handle, result);
    if (strcmp(name, "AddV2") == 0) TFE_OpAddInput(op, shared_handle, result);
    TFE_TensorHandle* output = NULL;
    int count = 1;
    TFE_Execute(op, &output, &count, result);
    TFE_DeleteOp(op);
    return hash_of_handle(output, result);
}

/* Contexts: calls of one function, functions that come and go, lists, options. */
static int next_number;

static uint64_t call_function(void* name, TF_Status* result) { return call(name, result); }

static TF_Function* square_plus(const char* name, TF_Status* result) {
    TF_Graph* body = TF_NewGraph();
    TF_Output x = placeholder(body, "x", TF_FLOAT), y = binary(body, "AddV2", "y", binary(body, "Mul", "square", x, x), x);
    TF_Function* function = TF_GraphToFunction(body, name, 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, result);
    TF_DeleteGraph(body);
    return function;
}

static uint64_t add_call_remove(void* unused, TF_Status* result) {
    (void)unused;
    char name[32];
    snprintf(name, sizeof name, "added_%d", __sync_fetch_and_add(&next_number, 1));
    TF_Function* function = square_plus(name, result);
    TFE_ContextAddFunction(context, function, result);
    uint64_t hash = call(name, result);
    TFE_ContextRemoveFunction(context, name, result);
    TF_DeleteFunction(function);
    return hash;
}

static uint64_t add_one_function(void* function, TF_Status* result) {
    TFE_ContextAddFunction(context, function, result);
    return TF_GetCode(result) == TF_OK && TFE_ContextHasFunction(context, TF_FunctionName(function));
}

static uint64_t list_devices(void* unused, TF_Status* result) {
    (void)unused;
    TF_DeviceList* devices = TFE_ContextListDevices(context, result);
    uint64_t hash = (uint64_t)TF_DeviceListCount(devices) ^ hash_text(TF_DeviceListName(devices, 0, result));
    TF_DeleteDeviceList(devices);
    return hash;
}

static uint64_t make_context(void* options, TF_Status* result) {
    TFE_Context* made = TFE_NewContext(options, result);
    uint64_t count = 0;
    if (made) {
        TF_DeviceList* devices = TFE_ContextListDevices(made, result);
        count = (uint64_t)TF_DeviceListCount(devices);
        TF_DeleteDeviceList(devices);
        TFE_DeleteContext(made);
    }
    return count;
}

static void contexts(void) {
    begin_eager(false);
    shared_handle = vector(3);
    TF_Function* function = square_plus("shared", fresh(status));
    share("one function added", add_one_function, function);
    share("one function called", call_function, "shared");
    share("functions that come and go", add_call_remove, NULL);
    share("devices", list_devices, NULL);
    TFE_ContextOptions* options = TFE_NewContextOptions();
    share("options", make_context, options);
    TFE_DeleteContextOptions(options);
    TF_DeleteFunction(function);
    TFE_DeleteTensorHandle(shared_handle);
    end_eager();
}

/* Handles of what an asynchronous context has yet to compute. */
static uint64_t resolve(void* handle, TF_Status* result) {
    return hash_of_tensor(TFE_TensorHandleResolve(handle, result)) ^ (uint64_t)TFE_TensorHandleNumDims(handle, result) ^
           (uint64_t)TFE_TensorHandleDim(handle, 0, result) << 8;
}

static uint64_t copy_to_device(void* handle, TF_Status* result) {
    return hash_of_handle(TFE_TensorHandleCopyToDevice(handle, context, "/device:CPU:0", result), result);
}

static void handles(void) {
    for (int is_async = 0; is_async < 2; ++is_async) {
        begin_eager(is_async);
        shared_handle = vector(5);
        TFE_TensorHandle* sum = execute_quietly("sum", new_op("AddV2", shared_handle, shared_handle));
        share("resolving", resolve, sum);
        share("copying", copy_to_device, sum);
        share("calling", call_function, "AddV2");
        TFE_DeleteTensorHandle(sum);
        TFE_DeleteTensorHandle(shared_handle);
        end_eager();
    }
}

/* Executors: threads that share one, and wait for it. */
static uint64_t call_on_executor(void* executor, TF_Status* result) {
    TFE_Executor* usual = TFE_ContextGetExecutorForThread(context);
    TFE_ContextSetExecutorForThread(context, executor);
    uint64_t hash = call("Neg", result) ^ (uint64_t)TFE_ExecutorIsAsync(executor);
    TFE_ExecutorWaitForAllPendingNodes(executor, result);
    TFE_ContextSetExecutorForThread(context, usual);
    TFE_DeleteExecutor(usual);
    return TF_GetCode(result) == TF_OK ? hash : 0;
}

static uint64_t clear_error(void* executor, TF_Status* result) {
    TFE_ExecutorClearError(executor);
    TFE_ExecutorWaitForAllPendingNodes(executor, result);
    return TF_GetCode(result) == TF_OK;
}

static void executors(void) {
    begin_eager(false);
    shared_handle = vector(3);
    for (int is_async = 0; is_async < 2; ++is_async) {
        TFE_Executor* executor = TFE_NewExecutor(is_async, true, 4);
        share(is_async ? "asynchronous" : "immediate", call_on_executor, executor);
        share("clearing", clear_error, executor);
        TFE_DeleteExecutor(executor);
    }
    TFE_DeleteTensorHandle(shared_handle);
    end_eager();
}

/* Cancellation managers. */
static void nothing(void* unused) { (void)unused; }

static uint64_t register_and_take_back(void* manager, TF_Status* result) {
    (void)result;
    TFE_CancellationToken token = TFE_CancellationManagerGetToken(manager);
    TFE_CancelCallback callback = {nothing, NULL};
    uint64_t answer = TFE_CancellationManagerRegisterCallback(manager, token, &callback, "nothing");
    answer |= (uint64_t)TFE_CancellationManagerDeregisterCallback(manager, token) << 1;
    return answer | (uint64_t)TFE_CancellationManagerIsCancelled(manager) << 2 | 8;
}

static uint64_t call_with_manager(void* manager, TF_Status* result) {
    TFE_Op* op = TFE_NewOp(context, "Neg", result);
    TFE_OpAddInput(op, shared_handle, result);
    TFE_OpSetCancellationManager(op, manager, result);
    TFE_TensorHandle* output = NULL;
    int count = 1;
    TFE_Execute(op, &output, &count, result);
    TFE_DeleteOp(op);
    return hash_of_handle(output, result);
}

static uint64_t cancel(void* manager, TF_Status* result) {
    (void)result;
    TFE_CancellationManagerStartCancel(manager);
    return 1;
}

static void cancellation_managers(void) {
    begin_eager(false);
    shared_handle = vector(3);
    TFE_CancellationManager* manager = TFE_NewCancellationManager();
    share("callbacks", register_and_take_back, manager);
    share("calls", call_with_manager, manager);
    share("cancelling", cancel, manager);
    share("after that", register_and_take_back, manager);
    TFE_DeleteCancellationManager(manager);
    TFE_DeleteTensorHandle(shared_handle);
    end_eager();
}

/* The attributes of a call that no thread changes (the reference gives some of many readers other bytes: endings.c reads). */
static uint64_t copy_attributes(void* attributes, TF_Status* result) {
    TFE_Op* op = TFE_NewOp(context, "Cast", result);
    TFE_OpAddInput(op, shared_handle, result);
    TFE_OpAddAttrs(op, attributes);
    TFE_TensorHandle* output = NULL;
    int count = 1;
    TFE_Execute(op, &output, &count, result);
    TFE_DeleteOp(op);
    return hash_of_handle(output, result);
}

static void attributes_of_a_call(void) {
    begin_eager(false);
    shared_handle = vector(3);
    TFE_Op* op = new_op("Cast", shared_handle, NULL);
    TFE_OpSetAttrType(op, "DstT", TF_INT32);
    const TFE_OpAttrs* attributes = TFE_OpGetAttrs(op);
    share("copying", copy_attributes, (void*)attributes);
    TFE_DeleteOp(op);
    TFE_DeleteTensorHandle(shared_handle);
    end_eager();
}

/* Metrics: cells that threads get and change. */
static uint64_t set_int(void* gauge, TF_Status* result) {
    (void)result;
    TFE_MonitoringIntGaugeCell* cell = TFE_MonitoringGetCellIntGauge1(gauge, "x");
    TFE_MonitoringIntGaugeCellSet(cell, 5);
    return (uint64_t)TFE_MonitoringIntGaugeCellValue(cell);
}

static uint64_t set_bool(void* gauge, TF_Status* result) {
    (void)result;
    TFE_MonitoringBoolGaugeCell* cell = TFE_MonitoringGetCellBoolGauge1(gauge, "x");
    TFE_MonitoringBoolGaugeCellSet(cell, true);
    return TFE_MonitoringBoolGaugeCellValue(cell);
}

static uint64_t set_text(void* gauge, TF_Status* result) {
    (void)result;
    TFE_MonitoringStringGaugeCell* cell = TFE_MonitoringGetCellStringGauge2(gauge, "x", "y");
    TFE_MonitoringStringGaugeCellSet(cell, "a text of some length, so that it is not kept in place");
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_MonitoringStringGaugeCellValue(cell, buffer);
    return hash_and_delete(buffer);
}

static uint64_t new_cells(void* counter, TF_Status* result) {
    (void)result;
    char label[32];
    snprintf(label, sizeof label, "label_%d", __sync_fetch_and_add(&next_number, 1));
    TFE_MonitoringCounterCell* cell = TFE_MonitoringGetCellCounter2(counter, label, "y");
    TFE_MonitoringCounterCellIncrementBy(cell, 3);
    return (uint64_t)TFE_MonitoringCounterCellValue(cell);
}

static uint64_t make_sampler(void* buckets, TF_Status* result) {
    char name[32];
    snprintf(name, sizeof name, "/test/sampler_%d", __sync_fetch_and_add(&next_number, 1));
    TFE_MonitoringSampler0* sampler = TFE_MonitoringNewSampler0(name, buckets, result, "d");
    if (!sampler) return 0;
    TFE_MonitoringSamplerCell* cell = TFE_MonitoringGetCellSampler0(sampler);
    TFE_MonitoringSamplerCellAdd(cell, 1.5);
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_MonitoringSamplerCellValue(cell, buffer);
    TFE_MonitoringDeleteSampler0(sampler);
    return hash_and_delete(buffer);
}

static void metrics(void) {
    status = TF_NewStatus();
    TFE_MonitoringIntGauge1* ints = TFE_MonitoringNewIntGauge1("/test/ints", fresh(status), "d", "a");
    TFE_MonitoringBoolGauge1* bools = TFE_MonitoringNewBoolGauge1("/test/bools", fresh(status), "d", "a");
    TFE_MonitoringStringGauge2* texts = TFE_MonitoringNewStringGauge2("/test/texts", fresh(status), "d", "a", "b");
    TFE_MonitoringCounter2* counter = TFE_MonitoringNewCounter2("/test/counter", fresh(status), "d", "a", "b");
    TFE_MonitoringBuckets* buckets = TFE_MonitoringNewExponentialBuckets(1, 2, 4);
    share("numbers", set_int, ints);
    share("bools", set_bool, bools);
    share("texts", set_text, texts);
    share("new cells", new_cells, counter);
    share("samplers from one set of buckets", make_sampler, buckets);
    TFE_MonitoringDeleteBuckets(buckets);
    TFE_MonitoringDeleteCounter2(counter);
    TFE_MonitoringDeleteStringGauge2(texts);
    TFE_MonitoringDeleteBoolGauge1(bools);
    TFE_MonitoringDeleteIntGauge1(ints);
    TF_DeleteStatus(status);
}

/* The unified interface. */
static TF_ExecutionContext* where;

static TF_AbstractTensor* run_one(TF_ExecutionContext* in, const char* type, const char* name, TF_AbstractTensor* x,
                                  TF_Status* result) {
    TF_AbstractOp* op = TF_NewAbstractOp(in);
    TF_AbstractOpSetOpType(op, type, result);
    if (name) TF_AbstractOpSetOpName(op, name, result);
    TF_OutputList* outputs = TF_NewOutputList();
    TF_OutputListSetNumOutputs(outputs, 1, result);
    TF_ExecuteOperation(op, 1, &x, outputs, result);
    TF_AbstractTensor* output = TF_GetCode(result) == TF_OK ? TF_OutputListGet(outputs, 0) : NULL;
    TF_DeleteOutputList(outputs);
    TF_DeleteAbstractOp(op);
    return output;
}

static uint64_t execute_abstract(void* tensor, TF_Status* result) {
    TF_AbstractTensor* output = run_one(where, "Neg", NULL, tensor, result);
    if (!output) return 0;
    uint64_t hash = hash_of_tensor(TFE_TensorHandleResolve(TF_AbstractTensorGetEagerTensor(output, result), result));
    TF_DeleteAbstractTensor(output);
    return hash;
}

static TF_AbstractFunction* trace(const char* name, TF_Status* result) {
    TF_ExecutionContext* body = TF_CreateFunction(name, result);
    TF_Shape shape = {-1, NULL};
    TF_AbstractTensor *x = TF_AddFunctionParameter(body, TF_FLOAT, shape, result), *y = run_one(body, "Neg", "y", x, result);
    TF_OutputList* outputs = TF_NewOutputList();
    TF_OutputListPushBack(outputs, y, result);
    TF_AbstractFunction* function = TF_FinalizeFunction(body, outputs, result);
    TF_DeleteOutputList(outputs);
    TF_DeleteAbstractTensor(y);
    TF_DeleteAbstractTensor(x);
    return function;
}

static uint64_t trace_and_call(void* tensor, TF_Status* result) {
    char name[32];
    snprintf(name, sizeof name, "traced_%d", __sync_fetch_and_add(&next_number, 1));
    TF_AbstractFunction* function = trace(name, result);
    TF_ExecutionContextRegisterFunction(where, function, result);
    TF_AbstractTensor* output = run_one(where, name, NULL, tensor, result);
    TF_DeleteAbstractFunction(function);
    if (!output) return 0;
    uint64_t hash = hash_of_tensor(TFE_TensorHandleResolve(TF_AbstractTensorGetEagerTensor(output, result), result));
    TF_DeleteAbstractTensor(output);
    return hash;
}

static uint64_t register_elsewhere(void* function, TF_Status* result) {
    TFE_ContextOptions* options = TFE_NewContextOptions();
    TF_ExecutionContext* own = TF_NewEagerExecutionContext(options, result);
    TF_ExecutionContextRegisterFunction(own, function, result);
    uint64_t answer = TF_GetCode(result) == TF_OK;
    TF_DeleteExecutionContext(own);
    TFE_DeleteContextOptions(options);
    return answer;
}

static void unified(void) {
    status = TF_NewStatus();
    TFE_ContextOptions* options = TFE_NewContextOptions();
    where = TF_NewEagerExecutionContext(options, fresh(status));
    TFE_DeleteContextOptions(options);
    TF_AbstractTensor* tensor = TF_CreateAbstractTensorFromEagerTensor(vector(3), fresh(status));
    share("executing", execute_abstract, tensor);
    share("tracing, each thread its own", trace_and_call, tensor);
    TF_AbstractFunction* function = trace("shared", fresh(status));
    share("one function", register_elsewhere, function);
    TF_DeleteAbstractFunction(function);
    TF_DeleteAbstractTensor(tensor);
    TF_DeleteExecutionContext(where);
    TF_DeleteStatus(status);
}

/* Sessions of the first kind, import options, libraries, lists of ops. */
static uint64_t run_old_session(void* used, TF_Status* result) {
    const char* output = "y";
    TF_Tensor* value = NULL;
    TF_Run(used, NULL, NULL, NULL, 0, &output, &value, 1, NULL, 0, NULL, result);
    return hash_of_tensor(value);
}

static uint64_t extend_old_session(void* used, TF_Status* result) {
    char name[32];
    snprintf(name, sizeof name, "more_%d", __sync_fetch_and_add(&next_number, 1));
    TF_Graph* more = TF_NewGraph();
    float_constant(more, name, 7);
    TF_Buffer* def = exported(more);
    TF_ExtendGraph(used, def->data, def->length, result);
    TF_DeleteBuffer(def);
    TF_DeleteGraph(more);
    return TF_GetCode(result) == TF_OK;
}

static void first_sessions(void) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_DeprecatedSession* used = TF_NewDeprecatedSession(options, fresh(status));
    TF_DeleteSessionOptions(options);
    unary(graph, "Neg", "y", float_constant(graph, "x", 5));
    TF_Buffer* def = exported(graph);
    TF_ExtendGraph(used, def->data, def->length, fresh(status));
    TF_DeleteBuffer(def);
    share("running", run_old_session, used);
    share("extending", extend_old_session, used);
    share("running what has grown", run_old_session, used);
    TF_CloseDeprecatedSession(used, fresh(status));
    TF_DeleteDeprecatedSession(used, fresh(status));
}

static TF_Buffer* imported;

static uint64_t import_with(void* options, TF_Status* result) {
    TF_Graph* target = TF_NewGraph();
    TF_ImportGraphDefResults* results = TF_GraphImportGraphDefWithResults(target, imported, options, result);
    TF_Output* outputs = NULL;
    int count = 0;
    if (results) TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
    uint64_t hash = count ? hash_text(TF_OperationName(outputs[0].oper)) : 0;
    TF_DeleteImportGraphDefResults(results);
    TF_DeleteGraph(target);
    return hash;
}

static uint64_t read_library(void* library, TF_Status* result) {
    (void)result;
    return TF_GetOpList(library).length + 1;
}

static uint64_t all_kernels(void* unused, TF_Status* result) {
    (void)unused;
    TF_Buffer* kernels = TF_GetRegisteredKernelsForOp("MatMul", result);
    uint64_t length = kernels ? kernels->length : 0;
    TF_DeleteBuffer(kernels);
    return length;
}

static void what_is_held(void) {
    float_constant(graph, "x", 5);
    imported = exported(graph);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(options, "again");
    TF_ImportGraphDefOptionsAddReturnOutput(options, "x", 0);
    share("import options", import_with, options);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(imported);
    TF_Library* library = TF_LoadLibrary("libm.so.6", fresh(status));
    print_status("library", status);
    if (library) share("a library", read_library, library);
    if (library) TF_DeleteLibraryHandle(library);
    share("kernels", all_kernels, NULL);
}

IN_NEW_SESSION(first_sessions)
IN_NEW_SESSION(what_is_held)

static const Case CASES[] = {
    {"contexts", contexts},
    {"handles", handles},
    {"executors", executors},
    {"cancellation_managers", cancellation_managers},
    {"attributes_of_a_call", attributes_of_a_call},
    {"metrics", metrics},
    {"unified", unified},
    CASE(first_sessions),
    CASE(what_is_held),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
