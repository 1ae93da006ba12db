/* What c_api_experimental.h adds: settings of compilation, checkpoints without a session, lists of shapes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"

static void print_buffer(const char* what, TF_Buffer* buffer) {
    printf("%s: ", what);
    if (!buffer) {
        printf("NULL\n");
        return;
    }
    print_bytes(buffer->data, buffer->length);
    printf("\n");
    TF_DeleteBuffer(buffer);
}

static void configurations(void) {
    print_buffer("nothing", TF_CreateConfig(0, 0, 1));
    print_buffer("compilation", TF_CreateConfig(1, 0, 2));
    print_buffer("growth", TF_CreateConfig(0, 1, 1));
    print_buffer("both", TF_CreateConfig(1, 1, 3));
    print_buffer("no trace", TF_CreateRunOptions(0));
    print_buffer("trace", TF_CreateRunOptions(1));
    TF_SessionOptions* options = TF_NewSessionOptions();
    for (unsigned char enable = 0; enable < 2; ++enable) {
        TF_EnableXLACompilation(options, enable);
        TF_Session* own = TF_NewSession(graph, options, fresh(status));
        print_status("session", status);
        char name[8];
        snprintf(name, sizeof name, "x%d", enable);
        TF_Output x = float_constant(graph, name, 3);
        snprintf(name, sizeof name, "y%d", enable);
        if (own) run_and_print("run", own, NOTHING, NULL, unary(graph, "Square", name, x), NULL);
        if (own) delete_session(own);
    }
    TF_DeleteSessionOptions(options);
}

static void settings(void) {
    static const unsigned char VALUES[] = {0, 0, 1, 1, 0};
    for (int i = 0; i < N_ELEMENTS(VALUES); ++i) {
        printf("%d", TF_SetXlaEnableLazyCompilation(VALUES[i]));
        printf(" %d\n", TF_SetTfXlaCpuGlobalJit(VALUES[i]));
    }
    static const char* const MODES[] = {"1", "0", "2", "-1", "fusible", "single-gpu(0)", "single-gpu(2)", "nonsense",
                                        "0", "", "nonsense"};
    printf("%d\n", TF_GetXlaAutoJitEnabled());
    for (int i = 0; i < N_ELEMENTS(MODES); ++i) {
        TF_SetXlaAutoJitMode(MODES[i]);
        printf("%s: %d\n", MODES[i], TF_GetXlaAutoJitEnabled());
    }
    TF_SetXlaMinClusterSize(7);
    for (unsigned char disabled = 0; disabled < 3; ++disabled) {
        TF_SetXlaConstantFoldingDisabled(disabled);
        printf("%d\n", TF_GetXlaConstantFoldingDisabled() != 0);
    }
}

static void checkpoint(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s/patterns_saved_model/variables/variables", data_folder());
    TF_CheckpointReader* reader = TF_NewCheckpointReader(path, fresh(status));
    print_status("open", status);
    int count = TF_CheckpointReaderSize(reader);
    printf("%d tensors\n", count);
    for (int i = 0; i < count; ++i) {
        const char* name = TF_CheckpointReaderGetVariable(reader, i);
        int rank = TF_CheckpointReaderGetVariableNumDims(reader, name);
        printf("%s: type %d, rank %d, %d:", name, (int)TF_CheckpointReaderGetVariableDataType(reader, name), rank,
               TF_CheckpointReaderHasTensor(reader, name));
        int64_t dims[8] = {0};
        TF_CheckpointReaderGetVariableShape(reader, name, dims, rank, fresh(status));
        for (int k = 0; k < rank; ++k) printf(" %lld", (long long)dims[k]);
        TF_Tensor* tensor = TF_CheckpointReaderGetTensor(reader, name, fresh(status));
        printf(" %d", (int)TF_GetCode(status));
        if (tensor && TF_TensorType(tensor) != TF_STRING) {
            printf(" %016llx", (unsigned long long)hash_bytes(TF_TensorData(tensor), TF_TensorByteSize(tensor)));
        }
        printf("\n");
        TF_DeleteTensor(tensor);
    }
    printf("missing: %d\n", TF_CheckpointReaderHasTensor(reader, "no such tensor"));
    print_tensor("missing", TF_CheckpointReaderGetTensor(reader, "no such tensor", fresh(status)));
    print_status("missing", status);
    int64_t dims[8];
    const char* name = TF_CheckpointReaderGetVariable(reader, 1);
    TF_CheckpointReaderGetVariableShape(reader, name, dims, 8, fresh(status));
    print_status("another rank", status);
    TF_DeleteCheckpointReader(reader);
}

static void no_checkpoint(void) {
    TF_CheckpointReader* reader = TF_NewCheckpointReader("there/is/none", fresh(status));
    print_status("none", status);
    printf("%s\n", reader ? "a reader" : "NULL");
    write_file("damaged.index", "this is no table of tensors, nor is it long enough to be one.", 60);
    reader = TF_NewCheckpointReader("damaged", fresh(status));
    print_status("damaged", status);
    printf("%s\n", reader ? "a reader" : "NULL");
}

/* The reference ends the process, or reads memory that is not its own, for names and numbers that are none. */
static void names_that_are_none(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s/patterns_saved_model/variables/variables", data_folder());
    TF_CheckpointReader* reader = TF_NewCheckpointReader(path, fresh(status));
    int64_t dims[1];
    printf("%s\n", TF_CheckpointReaderGetVariable(reader, 1000) ? "a name" : "NULL");
    printf("%s\n", TF_CheckpointReaderGetVariable(reader, -1) ? "a name" : "NULL");
    printf("%d\n", (int)TF_CheckpointReaderGetVariableDataType(reader, "none"));
    printf("%d\n", TF_CheckpointReaderGetVariableNumDims(reader, "none"));
    TF_CheckpointReaderGetVariableShape(reader, "none", dims, 1, fresh(status));
    print_status("shape", status);
    TF_DeleteCheckpointReader(reader);
}

static void attributes(void) {
    static const struct {
        const char *op, *attr, *device;
        TF_DataType type;
    } ROWS[] = {
        {"AddV2", "T", "CPU", TF_FLOAT}, {"AddV2", "T", "GPU", TF_FLOAT},   {"AddV2", "T", "nonsense", TF_FLOAT},
        {"MatMul", "T", "CPU", TF_STRING}, {"MatMul", "T", "CPU", TF_DOUBLE}, {"NoSuchOp", "T", "CPU", TF_FLOAT},
        {"AddV2", "Q", "CPU", TF_FLOAT},
    };
    for (int i = 0; i < N_ELEMENTS(ROWS); ++i) {
        TF_AttrBuilder* builder = TF_NewAttrBuilder(ROWS[i].op);
        TF_AttrBuilderSetType(builder, ROWS[i].attr, ROWS[i].type);
        TF_AttrBuilderCheckCanRunOnDevice(builder, ROWS[i].device, fresh(status));
        print_code(ROWS[i].op, status); /* the text lists the kernels that there are */
        TF_DeleteAttrBuilder(builder);
    }
    const TF_DataType types[] = {TF_FLOAT, TF_INT32};
    TF_AttrBuilder* builder = TF_NewAttrBuilder("IdentityN");
    TF_AttrBuilderSetTypeList(builder, "T", types, 2);
    TF_AttrBuilderCheckCanRunOnDevice(builder, "CPU", fresh(status));
    print_status("IdentityN", status);
    TF_DeleteAttrBuilder(builder);
}

static void about_ops(void) {
    static const struct {
        const char* op;
        int input;
    } ROWS[] = {{"AddN", 0}, {"AddN", 1}, {"AddN", -1}, {"AddV2", 0}, {"NoSuchOp", 0}, {"IdentityN", 0},
                {"ConcatV2", 0}, {"ConcatV2", 1}};
    for (int i = 0; i < N_ELEMENTS(ROWS); ++i) {
        const char* name = TF_GetNumberAttrForOpListInput(ROWS[i].op, ROWS[i].input, fresh(status));
        printf("%s %d: %s\n", ROWS[i].op, ROWS[i].input, name ? name : "NULL");
        print_status("number", status);
    }
    static const char* const OPS[] = {"AddV2", "VarHandleOp", "RandomUniform", "NoSuchOp"};
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) {
        printf("%s: %d\n", OPS[i], TF_OpIsStateful(OPS[i], fresh(status)));
        print_status("stateful", status);
    }
}

static void print_list(const TF_ShapeAndTypeList* list) {
    printf("%d items\n", list->num_items);
    for (int i = 0; i < list->num_items; ++i) {
        printf("  %d, type %d:", list->items[i].num_dims, (int)list->items[i].dtype);
        for (int k = 0; k < list->items[i].num_dims; ++k) printf(" %lld", (long long)list->items[i].dims[k]);
        printf("\n");
    }
}

static void shape_lists(void) {
    TF_ShapeAndTypeList* list = TF_NewShapeAndTypeList(4);
    const int64_t dims[] = {2, -1, 3};
    TF_ShapeAndTypeListSetShape(list, 0, dims, 3);
    TF_ShapeAndTypeListSetShape(list, 1, dims, 0);
    TF_ShapeAndTypeListSetShape(list, 2, dims, 2);
    TF_ShapeAndTypeListSetUnknownShape(list, 3);
    for (int i = 0; i < 4; ++i) TF_ShapeAndTypeListSetDtype(list, i, i % 2 ? TF_INT32 : TF_FLOAT);
    print_list(list);
    TF_ShapeAndTypeListSetShape(list, 0, dims, 1);
    TF_ShapeAndTypeListSetUnknownShape(list, 2);
    print_list(list);
    TF_DeleteShapeAndTypeList(list);
    list = TF_NewShapeAndTypeList(0);
    printf("%d items\n", list->num_items);
    TF_DeleteShapeAndTypeList(list);
}

static void texts(void) {
    float_constant(graph, "named_in_the_text", 1);
    size_t length = 0;
    const char* text = TF_GraphDebugString(graph, &length);
    printf("%d %d\n", strstr(text, "name: \"named_in_the_text\"") != NULL, strlen(text) == length);
    free((char*)text);
    TF_Graph* body = TF_NewGraph();
    TF_Output a = placeholder(body, "a", TF_FLOAT), b = unary(body, "Neg", "b", a);
    TF_Function* f = TF_GraphToFunction(body, "my_f", 0, -1, NULL, 1, &a, 1, &b, NULL, NULL, NULL, fresh(status));
    char* function_text = TF_FunctionDebugString(f, &length);
    printf("%d %s\n", strlen(function_text) == length, function_text);
    free(function_text);
    TF_GraphCopyFunction(graph, f, NULL, fresh(status));
    printf("%d functions\n", TF_GraphNumFunctions(graph));
    TF_GraphRemoveFunction(graph, "my_f", fresh(status));
    print_status("remove", status);
    printf("%d functions\n", TF_GraphNumFunctions(graph));
    TF_GraphRemoveFunction(graph, "my_f", fresh(status));
    print_status("remove again", status);
    TF_GraphRemoveFunction(graph, "", fresh(status));
    print_status("no name", status);
    TF_DeleteFunction(f);
    TF_DeleteGraph(body);
    TF_MakeInternalErrorStatus(fresh(status), "made up");
    print_status("made up", status);
}

static void named_queues(void) {
    TF_Tensor* value = float_scalar(5);
    print_tensor("none", TF_DequeueNamedTensor(session, 1, fresh(status)));
    print_status("none", status);
    TF_EnqueueNamedTensor(session, 1, value, fresh(status));
    print_status("none", status);
    TF_OperationDescription* description = TF_NewOperation(graph, "FIFOQueueV2", "q");
    const TF_DataType types[] = {TF_FLOAT};
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_Output queue = finish(description);
    description = TF_NewOperation(graph, "QueueDequeueV2", "fifo_queue_dequeue_1");
    TF_AddInput(description, queue);
    TF_SetAttrTypeList(description, "component_types", types, 1);
    finish(description);
    TF_Output input = placeholder(graph, "arg_tensor_enqueue_1", TF_FLOAT);
    description = TF_NewOperation(graph, "QueueEnqueueV2", "fifo_queue_enqueue_1");
    TF_AddInput(description, queue);
    TF_AddInputList(description, &input, 1);
    finish(description);
    TF_EnqueueNamedTensor(session, 1, value, fresh(status));
    print_status("enqueue", status);
    TF_Tensor* result = TF_DequeueNamedTensor(session, 1, fresh(status));
    print_status("dequeue", status);
    print_tensor("dequeue", result);
    TF_DeleteTensor(result);
    TF_DeleteTensor(value);
}

static void libraries_and_ports(void) {
    printf("%d\n", TF_PickUnusedPortOrDie() > 0);
    TF_Library* library = TF_LoadPluggableDeviceLibrary("./no_such_library.so", fresh(status));
    print_status("none", status);
    printf("%s\n", library ? "a library" : "NULL");
    library = TF_LoadPluggableDeviceLibrary("libm.so.6", fresh(status));
    print_status("no plug-in", status);
    printf("%s\n", library ? "a library" : "NULL");
    TF_DeletePluggableDeviceLibraryHandle(library);
}

static void colocation(void) {
    TF_Output x = float_constant(graph, "x", 1);
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "y");
    TF_AddInput(description, x);
    const void* classes[] = {"loc:@not_there"};
    const size_t lengths[] = {14};
    TF_SetAttrStringList(description, "_class", classes, lengths, 1);
    finish(description);
    TF_Buffer* buffer = exported(graph);
    for (unsigned char validate = 0; validate < 2; ++validate) {
        TF_Graph* copy = TF_NewGraph();
        TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
        TF_ImportGraphDefOptionsSetValidateColocationConstraints(options, validate);
        TF_GraphImportGraphDef(copy, buffer, options, fresh(status));
        print_status(validate ? "validated" : "as it is", status);
        TF_DeleteImportGraphDefOptions(options);
        TF_DeleteGraph(copy);
    }
    TF_DeleteBuffer(buffer);
}

IN_NEW_SESSION(configurations)
IN_NEW_SESSION(settings)
IN_NEW_SESSION(checkpoint)
IN_NEW_SESSION(no_checkpoint)
IN_NEW_SESSION(names_that_are_none)
IN_NEW_SESSION(attributes)
IN_NEW_SESSION(about_ops)
IN_NEW_SESSION(shape_lists)
IN_NEW_SESSION(texts)
IN_NEW_SESSION(named_queues)
IN_NEW_SESSION(libraries_and_ports)
IN_NEW_SESSION(colocation)

static const Case CASES[] = {
    CASE(configurations), CASE(settings),    CASE(checkpoint), CASE(no_checkpoint), CASE(names_that_are_none),
    CASE(attributes),     CASE(about_ops),   CASE(shape_lists), CASE(texts),        CASE(named_queues),
    CASE(libraries_and_ports), CASE(colocation),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
