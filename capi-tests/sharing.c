/* Two threads and more on every object that may be shared: each does the same with it, many times, and says how often the
 * answer was another than the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api.h>
#include <tensorflow/c/env.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/share.h"

/* Graphs and operations. */
static uint64_t read_graph(void* object, TF_Status* result) {
    TF_Operation* sum = TF_GraphOperationByName(object, "sum");
    TF_Output output = {sum, 0};
    int64_t dims[2] = {0, 0};
    int rank = TF_GraphGetTensorNumDims(object, output, result);
    TF_GraphGetTensorShape(object, output, dims, 2, result);
    TF_Buffer* def = TF_NewBuffer();
    TF_OperationToNodeDef(sum, def, result);
    uint64_t length = def->length;
    TF_DeleteBuffer(def);
    TF_DataType type = 0;
    TF_OperationGetAttrType(sum, "T", &type, result);
    return hash_text(TF_OperationName(sum)) ^ hash_text(TF_OperationOpType(sum)) ^ (uint64_t)(rank + 7 * dims[0]) ^
           (uint64_t)type << 40 ^ length << 20 ^ (uint64_t)TF_OperationNumInputs(sum) << 50;
}

static uint64_t export_graph(void* object, TF_Status* result) {
    TF_Buffer* def = TF_NewBuffer();
    TF_GraphToGraphDef(object, def, result);
    uint64_t length = def->length; /* the reference writes attributes in any order */
    TF_DeleteBuffer(def);
    return length;
}

static uint64_t evaluate(void* object, TF_Status* result) {
    TF_Output shape = {TF_GraphOperationByName(object, "shape"), 0};
    TF_Tensor* value = NULL;
    unsigned char known = TF_TryEvaluateConstant(object, shape, &value, result);
    return known + hash_of_tensor(value);
}

static uint64_t definition(void* object, TF_Status* result) {
    TF_Buffer* def = TF_NewBuffer();
    TF_GraphGetOpDef(object, "MatMul", def, result);
    return hash_and_delete(def);
}

static TF_Output small_graph(void) {
    const int64_t dims[] = {2, 3};
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 2, dims);
    unary(graph, "Shape", "shape", x);
    return binary(graph, "AddV2", "sum", x, float_constant(graph, "one", 1));
}

static void a_graph(void) {
    small_graph();
    share("reading", read_graph, graph);
    share("exporting", export_graph, graph);
    share("evaluating", evaluate, graph);
    share("definitions", definition, graph);
}

/* Building in one graph: each thread adds operations of its own names. */
static int next_number;

static uint64_t add_operation(void* object, TF_Status* result) {
    char name[32];
    snprintf(name, sizeof(name), "added_%d", __sync_fetch_and_add(&next_number, 1));
    TF_Operation* x = TF_GraphOperationByName(object, "x");
    TF_OperationDescription* description = TF_NewOperation(object, "Neg", name);
    TF_AddInput(description, (TF_Output){x, 0});
    TF_Operation* added = TF_FinishOperation(description, result);
    return added && TF_GetCode(result) == TF_OK && TF_GraphOperationByName(object, name) == added;
}

static uint64_t import_into(void* object, TF_Status* result) {
    char prefix[32];
    snprintf(prefix, sizeof(prefix), "imported_%d", __sync_fetch_and_add(&next_number, 1));
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(options, prefix);
    TF_GraphImportGraphDef(graph, object, options, result);
    TF_DeleteImportGraphDefOptions(options);
    return TF_GetCode(result) == TF_OK;
}

static uint64_t add_gradient(void* object, TF_Status* result) {
    TF_Output y = {TF_GraphOperationByName(object, "sum"), 0}, x = {TF_GraphOperationByName(object, "x"), 0}, dx;
    TF_AddGradients(object, &y, 1, &x, 1, NULL, result, &dx);
    return TF_GetCode(result) == TF_OK && dx.oper != NULL;
}

static void building_a_graph(void) {
    small_graph();
    TF_Buffer* def = exported(graph);
    share("adding", add_operation, graph);
    share("importing", import_into, def);
    share("gradients", add_gradient, graph);
    TF_DeleteBuffer(def);
    size_t pos = 0;
    int count = 0;
    while (TF_GraphNextOperation(graph, &pos)) ++count;
    printf("at least as many operations as were added: %d\n", count > 2 * N_THREADS * TURNS);
}

/* Functions. */
static uint64_t read_function(void* object, TF_Status* result) {
    TF_Buffer* def = TF_NewBuffer();
    TF_FunctionToFunctionDef(object, def, result);
    uint64_t length = def->length;
    TF_DeleteBuffer(def);
    return hash_text(TF_FunctionName(object)) ^ length;
}

static uint64_t copy_function(void* object, TF_Status* result) {
    TF_Graph* target = TF_NewGraph();
    TF_GraphCopyFunction(target, object, NULL, result);
    uint64_t count = (uint64_t)TF_GraphNumFunctions(target);
    TF_DeleteGraph(target);
    return count;
}

static uint64_t copy_into_one(void* object, TF_Status* result) {
    TF_GraphCopyFunction(graph, object, NULL, result);
    return TF_GetCode(result) == TF_OK;
}

static void a_function(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), y = unary(graph, "Neg", "y", x);
    TF_Function* function =
        TF_GraphToFunction(graph, "negate", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, fresh(status));
    share("reading", read_function, function);
    share("copying", copy_function, function);
    share("copying into one graph", copy_into_one, function);
    TF_DeleteFunction(function);
}

/* Sessions, and what they give. */
static uint64_t run_session(void* object, TF_Status* result) {
    TF_Output x = {TF_GraphOperationByName(graph, "x"), 0}, y = {TF_GraphOperationByName(graph, "sum"), 0};
    const int64_t dims[] = {2, 3};
    const float values[] = {1, 2, 3, 4, 5, 6};
    TF_Tensor *feed = tensor_of(TF_FLOAT, 2, dims, values), *sum = NULL;
    TF_SessionRun(object, NULL, &x, &feed, 1, &y, &sum, 1, NULL, 0, NULL, result);
    TF_DeleteTensor(feed);
    return hash_of_tensor(sum);
}

static uint64_t list_devices(void* object, TF_Status* result) {
    TF_DeviceList* devices = TF_SessionListDevices(object, result);
    uint64_t hash = (uint64_t)TF_DeviceListCount(devices) ^ hash_text(TF_DeviceListName(devices, 0, result));
    TF_DeleteDeviceList(devices);
    return hash;
}

static uint64_t run_partially(void* object, TF_Status* result) {
    TF_Output x = {TF_GraphOperationByName(graph, "x"), 0}, y = {TF_GraphOperationByName(graph, "sum"), 0};
    const char* handle = NULL;
    TF_SessionPRunSetup(object, &x, 1, &y, 1, NULL, 0, &handle, result);
    const int64_t dims[] = {2, 3};
    const float values[] = {1, 2, 3, 4, 5, 6};
    TF_Tensor *feed = tensor_of(TF_FLOAT, 2, dims, values), *sum = NULL;
    if (handle) TF_SessionPRun(object, handle, &x, &feed, 1, &y, &sum, 1, NULL, 0, result);
    TF_DeletePRunHandle(handle);
    TF_DeleteTensor(feed);
    return hash_of_tensor(sum);
}

static uint64_t read_devices(void* object, TF_Status* result) {
    return hash_text(TF_DeviceListName(object, 0, result)) ^ hash_text(TF_DeviceListType(object, 0, result)) ^
           (uint64_t)TF_DeviceListMemoryBytes(object, 0, result);
}

static void a_session(void) {
    small_graph();
    share("running", run_session, session);
    share("running in parts", run_partially, session);
    share("devices", list_devices, session);
    TF_DeviceList* devices = TF_SessionListDevices(session, fresh(status));
    share("a list of devices", read_devices, devices);
    TF_DeleteDeviceList(devices);
}

/* What is only read: options, tensors, buffers, results, maps. */
static uint64_t make_session(void* object, TF_Status* result) {
    TF_Session* made = TF_NewSession(graph, object, result);
    uint64_t sum = run_session(made, result);
    delete_session(made);
    return sum;
}

static uint64_t read_tensor(void* object, TF_Status* result) {
    (void)result;
    return hash_bytes(TF_TensorData(object), TF_TensorByteSize(object)) + (uint64_t)TF_NumDims(object) +
           (uint64_t)TF_TensorElementCount(object) * 31;
}

static uint64_t feed_tensor(void* object, TF_Status* result) {
    TF_Output x = {TF_GraphOperationByName(graph, "x"), 0}, y = {TF_GraphOperationByName(graph, "sum"), 0};
    TF_Tensor *feed = object, *sum = NULL;
    TF_SessionRun(session, NULL, &x, &feed, 1, &y, &sum, 1, NULL, 0, NULL, result);
    return hash_of_tensor(sum);
}

static uint64_t read_api_definition(void* object, TF_Status* result) {
    return hash_and_delete(TF_ApiDefMapGet(object, "MatMul", 6, result));
}

static uint64_t read_results(void* object, TF_Status* result) {
    (void)result;
    int count = 0;
    TF_Output* outputs = NULL;
    TF_ImportGraphDefResultsReturnOutputs(object, &count, &outputs);
    return count ? hash_text(TF_OperationName(outputs[0].oper)) : 0;
}

static uint64_t read_status(void* object, TF_Status* result) {
    (void)result;
    return (uint64_t)TF_GetCode(object) ^ hash_text(TF_Message(object));
}

static void what_is_only_read(void) {
    small_graph();
    TF_SessionOptions* options = TF_NewSessionOptions();
    share("session options", make_session, options);
    TF_DeleteSessionOptions(options);
    const int64_t dims[] = {2, 3};
    const float values[] = {1, 2, 3, 4, 5, 6};
    TF_Tensor* tensor = tensor_of(TF_FLOAT, 2, dims, values);
    share("a tensor", read_tensor, tensor);
    share("a feed", feed_tensor, tensor);
    TF_DeleteTensor(tensor);
    TF_Buffer* ops = TF_GetAllOpList();
    TF_ApiDefMap* map = TF_NewApiDefMap(ops, fresh(status));
    share("API definitions", read_api_definition, map);
    TF_DeleteApiDefMap(map);
    TF_DeleteBuffer(ops);
    TF_Status* lost = TF_NewStatus();
    TF_SetStatus(lost, TF_NOT_FOUND, "lost");
    share("a status", read_status, lost);
    TF_DeleteStatus(lost);
    TF_Buffer* def = exported(graph);
    TF_ImportGraphDefOptions* import = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(import, "again");
    TF_ImportGraphDefOptionsAddReturnOutput(import, "sum", 0);
    TF_ImportGraphDefResults* results = TF_GraphImportGraphDefWithResults(graph, def, import, fresh(status));
    share("import results", read_results, results);
    TF_DeleteImportGraphDefResults(results);
    TF_DeleteImportGraphDefOptions(import);
    TF_DeleteBuffer(def);
}

/* Eager execution. */
static TFE_TensorHandle* shared_handle;

static uint64_t execute(void* object, TF_Status* result) {
    TFE_Op* op = TFE_NewOp(object, "AddV2", result);
    TFE_OpAddInput(op, shared_handle, result);
    TFE_OpAddInput(op, shared_handle, result);
    TFE_TensorHandle* sum = NULL;
    int count = 1;
    TFE_Execute(op, &sum, &count, result);
    uint64_t hash = sum ? hash_of_tensor(TFE_TensorHandleResolve(sum, result)) : 0;
    if (sum) TFE_DeleteTensorHandle(sum);
    TFE_DeleteOp(op);
    return hash;
}

static uint64_t read_handle(void* object, TF_Status* result) {
    TFE_TensorHandle* copy = TFE_TensorHandleCopySharingTensor(object, result);
    uint64_t hash = (uint64_t)TFE_TensorHandleNumElements(copy, result) ^
                    hash_of_tensor(TFE_TensorHandleResolve(object, result)) ^
                    hash_text(TFE_TensorHandleDeviceName(copy, result));
    TFE_DeleteTensorHandle(copy);
    return hash;
}

static void an_eager_context(void) {
    TFE_ContextOptions* options = TFE_NewContextOptions();
    TFE_Context* context = TFE_NewContext(options, fresh(status));
    TFE_DeleteContextOptions(options);
    const float values[] = {1, 2, 3};
    TF_Tensor* tensor = float_vector(3, values);
    shared_handle = TFE_NewTensorHandle(tensor, fresh(status));
    TF_DeleteTensor(tensor);
    share("executing", execute, context);
    share("a handle", read_handle, shared_handle);
    TFE_DeleteTensorHandle(shared_handle);
    TFE_DeleteContext(context);
}

/* Files and checkpoints. */
static uint64_t read_checkpoint(void* object, TF_Status* result) {
    (void)result; /* values, and whether there is one, are for one thread at a time in the reference: two may meet in its
                     cache, or at its place in the file */
    return (uint64_t)TF_CheckpointReaderSize(object) ^
           (uint64_t)TF_CheckpointReaderGetVariableNumDims(object, "weights") << 16;
}

static uint64_t write_file_of_its_own(void* object, TF_Status* result) {
    char path[64];
    snprintf(path, sizeof(path), "%s/%d", (const char*)object, __sync_fetch_and_add(&next_number, 1));
    TF_WritableFileHandle* file = NULL;
    TF_NewWritableFile(path, &file, result);
    if (!file) return 0;
    TF_AppendWritableFile(file, "text", 4, result);
    TF_CloseWritableFile(file, result);
    TF_FileStatistics stat = {0, 0, false};
    TF_FileStat(path, &stat, result);
    TF_DeleteFile(path, result);
    return (uint64_t)stat.length;
}

static void a_checkpoint(void) {
    static const char* const NAMES[] = {"weights"};
    static const char* const SLICES[] = {""};
    const float values[] = {1, 2, 3};
    TF_Output weights = constant(graph, "weights", float_vector(3, values));
    TF_OperationDescription* description = TF_NewOperation(graph, "SaveV2", "save");
    TF_AddInput(description, constant(graph, "prefix", string_scalar("./checkpoint")));
    TF_AddInput(description, constant(graph, "names", string_vector(1, NAMES)));
    TF_AddInput(description, constant(graph, "slices", string_vector(1, SLICES)));
    TF_AddInputList(description, &weights, 1);
    TF_Output save = finish(description);
    run_and_print("save", session, NOTHING, NULL, NOTHING, save.oper);
    TF_CheckpointReader* reader = TF_NewCheckpointReader("./checkpoint", fresh(status));
    share("a checkpoint", read_checkpoint, reader);
    TF_DeleteCheckpointReader(reader);
}

static void files(void) {
    share("a folder", write_file_of_its_own, ".");
    share("files in memory", write_file_of_its_own, "ram://shared");
}

/* A kernel of C: one instance, run by many threads; ops and kernels that are added meanwhile. */
static uint64_t n_computed;

static void shape_of_input(TF_ShapeInferenceContext* context, TF_Status* result) {
    TF_ShapeHandle* shape = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, shape, result);
    TF_ShapeInferenceContextSetOutput(context, 0, shape, result);
    TF_DeleteShapeHandle(shape);
}

static void pass_on(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    __sync_fetch_and_add(&n_computed, 1);
    TF_Status* result = TF_NewStatus();
    TF_Tensor* input = NULL;
    TF_GetInput(context, 0, &input, result);
    if (input) TF_SetOutput(context, 0, input, result);
    TF_DeleteTensor(input);
    TF_DeleteStatus(result);
}

static void add_op(const char* name, TF_Status* result) {
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
    TF_OpDefinitionBuilderAddInput(op, "x: float");
    TF_OpDefinitionBuilderAddOutput(op, "y: float");
    TF_OpDefinitionBuilderSetIsStateful(op, true);
    TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shape_of_input);
    TF_RegisterOpDefinition(op, result);
    TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", NULL, pass_on, NULL), result);
}

static uint64_t run_kernel(void* object, TF_Status* result) {
    TF_Output y = {TF_GraphOperationByName(object, "y"), 0};
    TF_Tensor* value = NULL;
    TF_SessionRun(session, NULL, NULL, NULL, 0, &y, &value, 1, NULL, 0, NULL, result);
    return hash_of_tensor(value);
}

static uint64_t add_another_op(void* object, TF_Status* result) {
    (void)object;
    char name[32];
    snprintf(name, sizeof(name), "CapiShared%d", __sync_fetch_and_add(&next_number, 1));
    add_op(name, result);
    return TF_GetCode(result) == TF_OK;
}

static void a_kernel(void) {
    add_op("CapiShared", fresh(status));
    print_status("op and kernel", status);
    unary(graph, "CapiShared", "y", float_constant(graph, "five", 5));
    share("running", run_kernel, graph);
    printf("computed in every run: %d\n", n_computed == N_THREADS * TURNS + 1);
    share("adding ops", add_another_op, NULL);
}

IN_NEW_SESSION(a_graph)
IN_NEW_SESSION(building_a_graph)
IN_NEW_SESSION(a_function)
IN_NEW_SESSION(a_session)
IN_NEW_SESSION(what_is_only_read)
IN_NEW_SESSION(an_eager_context)
IN_NEW_SESSION(a_checkpoint)
IN_NEW_SESSION(files)
IN_NEW_SESSION(a_kernel)

static const Case CASES[] = {
    CASE(a_graph),           CASE(building_a_graph), CASE(a_function), CASE(a_session),
    CASE(what_is_only_read), CASE(an_eager_context), CASE(a_checkpoint), CASE(files), CASE(a_kernel),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
