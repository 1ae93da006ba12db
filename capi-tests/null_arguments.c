/* NULL wherever a pointer goes. The reference aborts on most of these, so this runs on our library only: every case
 * must end, and statuses that are given must not be OK where an argument is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/env.h>

#include "harness/build.h"
#include "harness/harness.h"

static TF_Graph* graph;
static TF_Status* status;
static int n_accepted = 0;

/* Counts a call that should have failed and says which. */
static void must_fail(const char* what) {
    if (TF_GetCode(status) == TF_OK) {
        ++n_accepted;
        printf("accepted: %s\n", what);
    }
    fresh(status);
}

static void deletes(void) {
    TF_DeleteStatus(NULL);
    TF_DeleteBuffer(NULL);
    TF_DeleteTensor(NULL);
    TF_DeleteGraph(NULL);
    TF_DeleteSessionOptions(NULL);
    TF_DeleteImportGraphDefOptions(NULL);
    TF_DeleteImportGraphDefResults(NULL);
    TF_DeleteFunction(NULL);
    TF_DeleteDeviceList(NULL);
    TF_DeleteLibraryHandle(NULL);
    TF_DeleteSession(NULL, status);
    fresh(status);
    TF_DeleteSession(NULL, NULL);
    TF_CloseSession(NULL, status);
    must_fail("TF_CloseSession");
}

static void statuses(void) {
    TF_SetStatus(NULL, TF_INTERNAL, "x");
    TF_SetStatus(status, TF_INTERNAL, NULL);
    fresh(status);
    TF_SetPayload(NULL, "a", "b");
    TF_SetPayload(status, NULL, NULL);
    TF_ForEachPayload(NULL, NULL, NULL);
    TF_SetStatusFromIOError(NULL, 2, "x");
    TF_SetStatusFromIOError(status, 2, NULL);
    fresh(status);
    printf("code of NULL is OK: %d\n", TF_GetCode(NULL) == TF_OK);
    printf("message of NULL: %s\n", TF_Message(NULL) ? "text" : "NULL");
}

static void buffers_and_tensors(void) {
    TF_DeleteBuffer(TF_NewBufferFromString(NULL, 0));
    TF_DeleteBuffer(TF_NewBufferFromString(NULL, 5));
    TF_Buffer nothing = TF_GetBuffer(NULL);
    printf("buffer of NULL: %zu\n", nothing.length);
    TF_DeleteTensor(TF_NewTensor(TF_FLOAT, NULL, 2, NULL, 0, NULL, NULL));
    TF_DeleteTensor(TF_NewTensor(TF_FLOAT, NULL, 0, NULL, 4, NULL, NULL));
    TF_DeleteTensor(TF_AllocateTensor(TF_FLOAT, NULL, 2, 16));
    TF_DeleteTensor(TF_AllocateTensor(TF_FLOAT, NULL, -3, 16));
    printf("%d %d %lld %zu %lld %d\n", (int)TF_TensorType(NULL), TF_NumDims(NULL), (long long)TF_Dim(NULL, 0),
           TF_TensorByteSize(NULL), (long long)TF_TensorElementCount(NULL), TF_TensorData(NULL) != NULL);
    TF_Tensor* tensor = float_scalar(1);
    printf("%lld %lld\n", (long long)TF_Dim(tensor, 0), (long long)TF_Dim(tensor, -1));
    TF_SetShape(NULL, NULL, 0);
    TF_SetShape(tensor, NULL, 3);
    TF_TensorIsAligned(NULL);
    TF_TensorMaybeMove(NULL);
    TF_TensorBitcastFrom(NULL, TF_FLOAT, NULL, NULL, 0, status);
    must_fail("TF_TensorBitcastFrom");
    TF_TensorFromProto(NULL, NULL, status);
    must_fail("TF_TensorFromProto");
    TF_DeleteTensor(tensor);
}

static void strings(void) {
    TF_TString string;
    TF_StringInit(&string);
    TF_StringCopy(&string, NULL, 0);
    TF_StringAssignView(&string, NULL, 0);
    TF_StringDealloc(&string);
}

static void building(void) {
    TF_Output none = {NULL, 0};
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_FinishOperation(NULL, status);
    must_fail("TF_FinishOperation");
    TF_FinishOperation(TF_NewOperation(graph, NULL, "a"), status);
    must_fail("operation type NULL");
    TF_FinishOperation(TF_NewOperation(graph, "NoOp", NULL), status);
    must_fail("operation name NULL");
    TF_FinishOperation(TF_NewOperation(NULL, "NoOp", "b"), status);
    must_fail("graph NULL");
    TF_SetDevice(NULL, NULL);
    TF_AddInput(NULL, x);
    TF_AddInputList(NULL, NULL, 2);
    TF_AddControlInput(NULL, NULL);
    TF_ColocateWith(NULL, NULL);
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "n");
    TF_AddInput(description, none);
    TF_FinishOperation(description, status);
    must_fail("input NULL");
    description = TF_NewOperation(graph, "AddN", "l");
    TF_AddInputList(description, NULL, 2);
    TF_FinishOperation(description, status);
    must_fail("inputs NULL");
    description = TF_NewOperation(graph, "NoOp", "c");
    TF_SetDevice(description, NULL);
    TF_AddControlInput(description, NULL);
    TF_ColocateWith(description, NULL);
    TF_FinishOperation(description, status);
    fresh(status);
}

static void setting_attributes(void) {
    TF_OperationDescription* d = TF_NewOperation(graph, "NoOp", "n");
    TF_SetAttrString(d, "_a", NULL, 3);
    TF_SetAttrString(d, NULL, "x", 1);
    TF_SetAttrStringList(d, "_b", NULL, NULL, 2);
    TF_SetAttrInt(d, NULL, 1);
    TF_SetAttrIntList(d, "_c", NULL, 2);
    TF_SetAttrFloatList(d, "_d", NULL, 2);
    TF_SetAttrBoolList(d, "_e", NULL, 2);
    TF_SetAttrTypeList(d, "_f", NULL, 2);
    TF_SetAttrPlaceholder(d, "_g", NULL);
    TF_SetAttrFuncName(d, "_h", NULL, 4);
    TF_SetAttrShape(d, "_i", NULL, 2);
    TF_SetAttrShapeList(d, "_j", NULL, NULL, 2);
    TF_SetAttrTensorShapeProto(d, "_k", NULL, 4, status);
    must_fail("TF_SetAttrTensorShapeProto");
    TF_SetAttrTensorShapeProtoList(d, "_l", NULL, NULL, 2, status);
    must_fail("TF_SetAttrTensorShapeProtoList");
    TF_SetAttrTensor(d, "_m", NULL, status);
    must_fail("TF_SetAttrTensor");
    TF_SetAttrTensorList(d, "_n", NULL, 2, status);
    must_fail("TF_SetAttrTensorList");
    TF_SetAttrValueProto(d, "_o", NULL, 4, status);
    must_fail("TF_SetAttrValueProto");
    TF_FinishOperation(d, status);
    fresh(status);
    TF_SetAttrInt(NULL, "_a", 1);
    TF_SetAttrType(NULL, "_a", TF_FLOAT);
    TF_SetAttrTensor(NULL, "_a", NULL, status);
    must_fail("no description");
}

static void operations(void) {
    TF_Output none = {NULL, 0};
    TF_Input no_input = {NULL, 0};
    printf("%s %s %s\n", TF_OperationName(NULL) ? "text" : "NULL", TF_OperationOpType(NULL) ? "text" : "NULL",
           TF_OperationDevice(NULL) ? "text" : "NULL");
    TF_OperationNumOutputs(NULL);
    TF_OperationOutputType(none);
    TF_OperationOutputListLength(NULL, "x", status);
    must_fail("TF_OperationOutputListLength");
    TF_OperationNumInputs(NULL);
    TF_OperationInputType(no_input);
    TF_OperationInputListLength(NULL, NULL, status);
    must_fail("TF_OperationInputListLength");
    TF_OperationInput(no_input);
    TF_OperationAllInputs(NULL, NULL, 3);
    TF_OperationOutputNumConsumers(none);
    TF_OperationOutputConsumers(none, NULL, 3);
    TF_OperationNumControlInputs(NULL);
    TF_OperationGetControlInputs(NULL, NULL, 3);
    TF_OperationNumControlOutputs(NULL);
    TF_OperationGetControlOutputs(NULL, NULL, 3);
    TF_OperationToNodeDef(NULL, NULL, status);
    must_fail("TF_OperationToNodeDef");
    TF_OperationGetNumAttrs(NULL);
    TF_OperationGetAttrNameLength(NULL, 0);
    TF_OperationGetAttrName(NULL, 0, NULL, status);
    must_fail("TF_OperationGetAttrName");
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_OperationAllInputs(x.oper, NULL, 3);
    TF_OperationGetAttrType(x.oper, "dtype", NULL, status);
    must_fail("TF_OperationGetAttrType into NULL");
    TF_OperationGetAttrType(x.oper, NULL, NULL, status);
    must_fail("TF_OperationGetAttrType of NULL");
    TF_OperationGetAttrMetadata(NULL, "dtype", status);
    must_fail("TF_OperationGetAttrMetadata");
    TF_OperationGetAttrTensor(x.oper, "dtype", NULL, status);
    must_fail("TF_OperationGetAttrTensor");
    TF_OperationGetAttrValueProto(x.oper, "dtype", NULL, status);
    must_fail("TF_OperationGetAttrValueProto");
}

static void graphs(void) {
    TF_Output none = {NULL, 0};
    TF_GraphOperationByName(NULL, "x");
    TF_GraphOperationByName(graph, NULL);
    TF_GraphNextOperation(NULL, NULL);
    TF_GraphNextOperation(graph, NULL);
    TF_GraphToGraphDef(NULL, NULL, status);
    must_fail("TF_GraphToGraphDef");
    TF_GraphToGraphDef(graph, NULL, status);
    must_fail("TF_GraphToGraphDef into NULL");
    TF_GraphGetOpDef(graph, NULL, NULL, status);
    must_fail("TF_GraphGetOpDef");
    TF_GraphVersions(graph, NULL, status);
    must_fail("TF_GraphVersions");
    TF_GraphSetTensorShape(graph, none, NULL, 2, status);
    must_fail("TF_GraphSetTensorShape");
    TF_GraphGetTensorNumDims(graph, none, status);
    must_fail("TF_GraphGetTensorNumDims");
    TF_GraphGetTensorShape(graph, none, NULL, 2, status);
    must_fail("TF_GraphGetTensorShape");
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 1, (const int64_t[]){3});
    TF_GraphGetTensorShape(graph, x, NULL, 1, status);
    must_fail("TF_GraphGetTensorShape into NULL");
    TF_GraphSetTensorShape(graph, x, NULL, 1, status);
    must_fail("TF_GraphSetTensorShape from NULL");
    TF_GraphSetTensorShape(NULL, x, NULL, 0, status);
    must_fail("TF_GraphSetTensorShape without a graph");
}

static void importing(void) {
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_Buffer* empty = TF_NewBuffer();
    TF_GraphImportGraphDef(NULL, empty, options, status);
    must_fail("no graph");
    TF_GraphImportGraphDef(graph, NULL, options, status);
    must_fail("no definition");
    TF_GraphImportGraphDef(graph, empty, NULL, status);
    fresh(status);
    TF_GraphImportGraphDefWithResults(graph, NULL, NULL, status);
    must_fail("with results");
    TF_GraphImportGraphDefWithReturnOutputs(graph, NULL, NULL, NULL, 3, status);
    must_fail("with return outputs");
    TF_Output none = {NULL, 0};
    TF_ImportGraphDefOptionsSetPrefix(options, NULL);
    TF_ImportGraphDefOptionsSetPrefix(NULL, "p");
    TF_ImportGraphDefOptionsSetDefaultDevice(options, NULL);
    TF_ImportGraphDefOptionsSetUniquifyNames(NULL, 1);
    TF_ImportGraphDefOptionsSetUniquifyPrefix(NULL, 1);
    TF_ImportGraphDefOptionsAddInputMapping(options, NULL, 0, none);
    TF_ImportGraphDefOptionsAddInputMapping(NULL, "x", 0, none);
    TF_ImportGraphDefOptionsRemapControlDependency(options, NULL, NULL);
    TF_ImportGraphDefOptionsAddControlDependency(options, NULL);
    TF_ImportGraphDefOptionsAddReturnOutput(options, NULL, 0);
    TF_ImportGraphDefOptionsNumReturnOutputs(NULL);
    TF_ImportGraphDefOptionsAddReturnOperation(options, NULL);
    TF_ImportGraphDefOptionsNumReturnOperations(NULL);
    TF_ImportGraphDefResultsReturnOutputs(NULL, NULL, NULL);
    TF_ImportGraphDefResultsReturnOperations(NULL, NULL, NULL);
    TF_ImportGraphDefResultsMissingUnusedInputMappings(NULL, NULL, NULL, NULL);
    TF_GraphImportGraphDef(graph, empty, options, status);
    fresh(status);
    TF_DeleteBuffer(empty);
    TF_DeleteImportGraphDefOptions(options);
}

static void functions(void) {
    TF_GraphCopyFunction(NULL, NULL, NULL, status);
    must_fail("TF_GraphCopyFunction");
    TF_GraphNumFunctions(NULL);
    TF_GraphGetFunctions(NULL, NULL, 3, status);
    must_fail("TF_GraphGetFunctions");
    TF_GraphToFunction(NULL, "f", 0, -1, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, status);
    must_fail("no body");
    TF_GraphToFunction(graph, NULL, 0, -1, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, status);
    must_fail("no name");
    TF_GraphToFunction(graph, "f", 0, -1, NULL, 2, NULL, 2, NULL, NULL, NULL, NULL, status);
    must_fail("no inputs");
    printf("name of NULL: %s\n", TF_FunctionName(NULL) ? "text" : "NULL");
    TF_FunctionToFunctionDef(NULL, NULL, status);
    must_fail("TF_FunctionToFunctionDef");
    TF_FunctionImportFunctionDef(NULL, 5, status);
    must_fail("TF_FunctionImportFunctionDef");
    TF_FunctionSetAttrValueProto(NULL, NULL, NULL, 0, status);
    must_fail("TF_FunctionSetAttrValueProto");
    TF_FunctionGetAttrValueProto(NULL, NULL, NULL, status);
    must_fail("TF_FunctionGetAttrValueProto");
}

static void sessions(void) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetTarget(NULL, NULL);
    TF_SetTarget(options, NULL);
    TF_SetConfig(options, NULL, 5, status);
    must_fail("TF_SetConfig");
    TF_SetConfig(NULL, NULL, 0, status);
    must_fail("TF_SetConfig without options");
    TF_DeleteSession(TF_NewSession(NULL, options, status), status);
    fresh(status);
    TF_DeleteSession(TF_NewSession(graph, NULL, status), status);
    fresh(status);
    TF_Session* session = TF_NewSession(graph, options, status);
    TF_Output x = placeholder(graph, "x", TF_FLOAT), y = unary(graph, "Neg", "y", x), none = {NULL, 0};
    TF_Tensor *feed = float_scalar(1), *no_feed = NULL, *result = NULL;
    const TF_Operation* no_target = NULL;
    TF_SessionRun(NULL, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    must_fail("no session");
    TF_SessionRun(session, NULL, NULL, NULL, 1, &y, &result, 1, NULL, 0, NULL, status);
    must_fail("no inputs");
    TF_SessionRun(session, NULL, &x, NULL, 1, &y, &result, 1, NULL, 0, NULL, status);
    must_fail("no input values");
    TF_SessionRun(session, NULL, &x, &no_feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    must_fail("a NULL tensor");
    TF_SessionRun(session, NULL, &none, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    must_fail("a NULL input");
    TF_SessionRun(session, NULL, &x, &feed, 1, NULL, &result, 1, NULL, 0, NULL, status);
    must_fail("no outputs");
    TF_SessionRun(session, NULL, &x, &feed, 1, &none, &result, 1, NULL, 0, NULL, status);
    must_fail("a NULL output");
    TF_SessionRun(session, NULL, &x, &feed, 1, &y, NULL, 1, NULL, 0, NULL, status);
    must_fail("no place for results");
    TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, NULL, 1, NULL, status);
    must_fail("no targets");
    TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, &no_target, 1, NULL, status);
    must_fail("a NULL target");
    TF_SessionRun(session, NULL, &x, &feed, -1, &y, &result, -1, NULL, -1, NULL, status);
    must_fail("negative counts");
    TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, NULL);
    printf("without a status: %s\n", result ? "a result" : "NULL");
    TF_DeleteTensor(result);
    TF_DeleteTensor(feed);
    TF_SessionListDevices(NULL, status);
    must_fail("TF_SessionListDevices");
    TF_DeviceListCount(NULL);
    TF_DeviceListName(NULL, 0, status);
    must_fail("TF_DeviceListName");
    TF_LoadSessionFromSavedModel(NULL, NULL, NULL, NULL, 1, NULL, NULL, status);
    must_fail("TF_LoadSessionFromSavedModel");
    TF_LoadSessionFromSavedModel(options, NULL, "nowhere", NULL, 1, graph, NULL, status);
    must_fail("no tags");
    delete_session(session);
    TF_DeleteSessionOptions(options);
}

static void libraries(void) {
    TF_LoadLibrary(NULL, status);
    must_fail("TF_LoadLibrary");
    TF_GetOpList(NULL);
}

static void files(void) {
    static void (*const BY_NAME[])(const char*, TF_Status*) = {TF_CreateDir, TF_DeleteDir, TF_DeleteFile};
    for (int i = 0; i < N_ELEMENTS(BY_NAME); ++i) {
        BY_NAME[i](NULL, status);
        must_fail("a path");
    }
    TF_DeleteRecursively(NULL, NULL, NULL, status);
    must_fail("TF_DeleteRecursively");
    TF_FileStat(NULL, NULL, status);
    must_fail("TF_FileStat");
    TF_FileStat(".", NULL, status);
    must_fail("TF_FileStat");
    TF_NewWritableFile("x", NULL, status);
    must_fail("TF_NewWritableFile");
    TF_AppendWritableFile(NULL, NULL, 3, status);
    must_fail("TF_AppendWritableFile");
    TF_FlushWritableFile(NULL, status);
    must_fail("TF_FlushWritableFile");
    TF_SyncWritableFile(NULL, status);
    must_fail("TF_SyncWritableFile");
    TF_CloseWritableFile(NULL, status);
    TF_StringStreamDone(TF_GetChildren(NULL, status));
    must_fail("TF_GetChildren");
    printf("%d\n", TF_StringStreamNext(NULL, NULL));
    TF_StringStreamDone(NULL);
    free(TF_GetTempFileName(NULL));
    TF_DefaultThreadOptions(NULL);
    printf("%d\n", TF_StartThread(NULL, NULL, NULL, NULL) != NULL);
    TF_JoinThread(NULL);
    TF_LoadSharedLibrary(NULL, status);
    must_fail("TF_LoadSharedLibrary");
    TF_GetSymbolFromLibrary(NULL, NULL, status);
    must_fail("TF_GetSymbolFromLibrary");
}

static void experimental(void) {
    TF_EnableXLACompilation(NULL, 1);
    TF_SetXlaAutoJitMode(NULL);
    printf("%d %d\n", TF_GraphDebugString(NULL, NULL) != NULL, TF_FunctionDebugString(NULL, NULL) != NULL);
    TF_DequeueNamedTensor(NULL, 0, status);
    must_fail("TF_DequeueNamedTensor");
    TF_EnqueueNamedTensor(NULL, 0, NULL, status);
    must_fail("TF_EnqueueNamedTensor");
    TF_MakeInternalErrorStatus(NULL, NULL);
    TF_NewCheckpointReader(NULL, status);
    must_fail("TF_NewCheckpointReader");
    TF_DeleteCheckpointReader(NULL);
    printf("%d %d %d %d %d\n", TF_CheckpointReaderHasTensor(NULL, NULL), TF_CheckpointReaderSize(NULL),
           (int)TF_CheckpointReaderGetVariableDataType(NULL, NULL), TF_CheckpointReaderGetVariableNumDims(NULL, NULL),
           TF_CheckpointReaderGetVariable(NULL, 0) != NULL);
    TF_CheckpointReaderGetVariableShape(NULL, NULL, NULL, 1, status);
    must_fail("TF_CheckpointReaderGetVariableShape");
    TF_CheckpointReaderGetTensor(NULL, NULL, status);
    must_fail("TF_CheckpointReaderGetTensor");
    TF_AttrBuilder* builder = TF_NewAttrBuilder(NULL);
    TF_AttrBuilderSetType(NULL, NULL, TF_FLOAT);
    TF_AttrBuilderSetType(builder, NULL, TF_FLOAT);
    TF_AttrBuilderSetTypeList(builder, "T", NULL, 2);
    TF_AttrBuilderCheckCanRunOnDevice(builder, NULL, status);
    must_fail("TF_AttrBuilderCheckCanRunOnDevice");
    TF_DeleteAttrBuilder(builder);
    TF_DeleteAttrBuilder(NULL);
    TF_GetNumberAttrForOpListInput(NULL, 0, status);
    must_fail("TF_GetNumberAttrForOpListInput");
    TF_OpIsStateful(NULL, status);
    must_fail("TF_OpIsStateful");
    TF_InitMain(NULL, NULL, NULL);
    TF_ShapeAndTypeList* list = TF_NewShapeAndTypeList(1);
    TF_ShapeAndTypeListSetShape(list, 0, NULL, 2);
    TF_ShapeAndTypeListSetShape(NULL, 0, NULL, 2);
    TF_ShapeAndTypeListSetUnknownShape(NULL, 0);
    TF_ShapeAndTypeListSetDtype(NULL, 0, TF_FLOAT);
    TF_DeleteShapeAndTypeList(list);
    TF_DeleteShapeAndTypeList(NULL);
    TF_DeleteShapeAndTypeListArray(NULL, 3);
    TF_ImportGraphDefOptionsSetValidateColocationConstraints(NULL, 1);
    TF_LoadPluggableDeviceLibrary(NULL, status);
    must_fail("TF_LoadPluggableDeviceLibrary");
    TF_DeletePluggableDeviceLibraryHandle(NULL);
    TF_GraphRemoveFunction(NULL, NULL, status);
    must_fail("TF_GraphRemoveFunction");
}

static void without_a_status(void) {
    TF_FinishOperation(TF_NewOperation(graph, "NoOp", "n"), NULL);
    TF_FinishOperation(TF_NewOperation(graph, "NoOp", "n"), NULL);
    TF_DeleteSession(TF_NewSession(graph, NULL, NULL), NULL);
    TF_GraphToGraphDef(graph, NULL, NULL);
    TF_LoadLibrary("nowhere", NULL);
}

static void in_new_graph(void (*body)(void)) {
    graph = TF_NewGraph();
    status = TF_NewStatus();
    body();
    TF_DeleteStatus(status);
    TF_DeleteGraph(graph);
    printf("%d accepted\n", n_accepted);
}

#define IN_NEW_GRAPH(body) \
    static void run_##body(void) { in_new_graph(body); }
#define CASE(body) {#body, run_##body}

IN_NEW_GRAPH(deletes)
IN_NEW_GRAPH(statuses)
IN_NEW_GRAPH(buffers_and_tensors)
IN_NEW_GRAPH(strings)
IN_NEW_GRAPH(building)
IN_NEW_GRAPH(setting_attributes)
IN_NEW_GRAPH(operations)
IN_NEW_GRAPH(graphs)
IN_NEW_GRAPH(importing)
IN_NEW_GRAPH(functions)
IN_NEW_GRAPH(sessions)
IN_NEW_GRAPH(libraries)
IN_NEW_GRAPH(files)
IN_NEW_GRAPH(experimental)
IN_NEW_GRAPH(without_a_status)

static const Case CASES[] = {
    CASE(deletes),          CASE(statuses), CASE(buffers_and_tensors),
    CASE(strings),          CASE(building), CASE(setting_attributes),
    CASE(operations),       CASE(graphs),   CASE(importing),
    CASE(functions),        CASE(sessions), CASE(libraries),
    CASE(files),            CASE(experimental), CASE(without_a_status),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
