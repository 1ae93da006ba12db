/* What users of the C API have run into, in public reports: see the numbers (tf is tensorflow/tensorflow). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/print_graph.h"
#include "harness/proto.h"

static TF_Output queue_of(const char* name, int rank, const int64_t* dims, int n_shapes) {
    TF_OperationDescription* description = TF_NewOperation(graph, "FIFOQueueV2", name);
    const TF_DataType types[] = {TF_INT32};
    const int64_t* all[] = {dims};
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_SetAttrShapeList(description, "shapes", all, &rank, n_shapes);
    return finish_and_print(description, name);
}

static void through(TF_Output queue, const char* name, TF_Tensor* element) {
    char part[64];
    snprintf(part, sizeof part, "%s_value", name);
    TF_Output value = placeholder(graph, part, TF_INT32);
    snprintf(part, sizeof part, "%s_enqueue", name);
    TF_OperationDescription* description = TF_NewOperation(graph, "QueueEnqueueV2", part);
    TF_AddInput(description, queue);
    TF_AddInputList(description, &value, 1);
    run_and_print(part, session, value, element, NOTHING, finish(description).oper);
    snprintf(part, sizeof part, "%s_dequeue", name);
    description = TF_NewOperation(graph, "QueueDequeueV2", part);
    TF_AddInput(description, queue);
    const TF_DataType types[] = {TF_INT32};
    TF_SetAttrTypeList(description, "component_types", types, 1);
    TF_Output dequeue = finish(description);
    printf("rank %d\n", TF_GraphGetTensorNumDims(graph, dequeue, fresh(status)));
    fetch(part, dequeue);
}

/* tf#14891 */
static void shapes_of_a_queue(void) {
    const int32_t values[] = {1, 2, 3, 4};
    const int64_t dims[] = {2, 2};
    through(queue_of("scalars", 0, NULL, 1), "scalars", int_scalar(7));
    through(queue_of("vectors", 1, dims, 1), "vectors", int_vector(2, values));
    through(queue_of("matrices", 2, dims, 1), "matrices", tensor_of(TF_INT32, 2, dims, values));
    TF_Output any = queue_of("any", 0, NULL, 0);
    through(any, "any", int_scalar(7));
    through(any, "any_other", int_vector(4, values));
}

static void attr_number(Message* node, const char* name, int field, int64_t number) {
    Message value = {0}, entry = {0};
    message_int(&value, field, number);
    message_text(&entry, 1, name);
    message_part(&entry, 2, &value);
    message_part(node, 5, &entry);
}

static void attr_text(Message* node, const char* name, const char* text) {
    Message value = {0}, entry = {0};
    message_text(&value, 2, text);
    message_text(&entry, 1, name);
    message_part(&entry, 2, &value);
    message_part(node, 5, &entry);
}

/* A NodeDef; inputs end with NULL. */
static Message node_def(const char* name, const char* op, const char* const* inputs) {
    Message node = {0};
    message_text(&node, 1, name);
    message_text(&node, 2, op);
    for (int i = 0; inputs[i]; ++i) message_text(&node, 3, inputs[i]);
    return node;
}

#define INPUTS(...) ((const char* const[]){__VA_ARGS__, NULL})
#define NO_INPUTS ((const char* const[]){NULL})

static void import_message(const char* what, Message* def, TF_ImportGraphDefOptions* options) {
    TF_Buffer* buffer = TF_NewBufferFromString(def->data, def->length);
    TF_GraphImportGraphDef(graph, buffer, options, fresh(status));
    print_status(what, status);
    TF_DeleteBuffer(buffer);
    message_free(def);
}

/* tf#26371: while (i < 10) i = i + 1, and an AssignAdd in the body that waits for `gate`: how often does it run? */
static void count_in_a_loop(const char* what, const char* gate) {
    TF_OperationDescription* description = TF_NewOperation(graph, "VariableV2", "count");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrShape(description, "shape", NULL, 0);
    TF_Output variable = finish(description);
    TF_Output assign = binary(graph, "Assign", "start", variable, float_constant(graph, "zero_count", 0));
    TF_Output outer[] = {int_constant(graph, "zero", 0), int_constant(graph, "ten", 10), int_constant(graph, "one", 1),
                         variable, float_constant(graph, "step", 1)};
    static const char* const NAMES[] = {"zero", "ten", "one", "count", "step"};
    static const char* const ENTERED[] = {"enter", "limit", "increment", "handle", "amount"};
    Message def = {0};
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    for (int i = 0; i < 5; ++i) {
        TF_ImportGraphDefOptionsAddInputMapping(options, NAMES[i], 0, outer[i]);
        Message node = node_def(ENTERED[i], i == 3 ? "RefEnter" : "Enter", INPUTS(NAMES[i]));
        attr_number(&node, "T", 6, i >= 3 ? TF_FLOAT : TF_INT32);
        attr_text(&node, "frame_name", "loop");
        if (i > 0) attr_number(&node, "is_constant", 5, 1);
        message_part(&def, 1, &node);
    }
    Message merge = node_def("merge", "Merge", INPUTS("enter", "next"));
    attr_number(&merge, "N", 3, 2);
    Message less = node_def("less", "Less", INPUTS("merge", "limit"));
    Message condition = node_def("condition", "LoopCond", INPUTS("less"));
    Message choice = node_def("switch", "Switch", INPUTS("merge", "condition"));
    Message turn = node_def("turn", "Identity", INPUTS("switch:1"));
    Message counted = node_def("counted", "AssignAdd", INPUTS("handle", "amount", gate));
    Message sum = node_def("sum", "AddV2", INPUTS("turn", "increment", "^counted"));
    Message next = node_def("next", "NextIteration", INPUTS("sum"));
    Message end = node_def("result", "Exit", INPUTS("switch"));
    Message* nodes[] = {&merge, &less, &condition, &choice, &turn, &counted, &sum, &next, &end};
    for (int i = 0; i < N_ELEMENTS(nodes); ++i) {
        if (nodes[i] != &condition) attr_number(nodes[i], "T", 6, nodes[i] == &counted ? TF_FLOAT : TF_INT32);
        message_part(&def, 1, nodes[i]);
    }
    import_message(what, &def, options);
    TF_DeleteImportGraphDefOptions(options);
    run_and_print("start", session, NOTHING, NULL, NOTHING, assign.oper);
    TF_Output result = {TF_GraphOperationByName(graph, "result"), 0};
    if (!result.oper) return;
    fetch("loop", result);
    fetch("ran", variable);
}

static void assign_in_every_turn(void) { count_in_a_loop("gated by the turn", "^turn"); }
static void assign_also_in_the_last_turn(void) { count_in_a_loop("gated by a constant", "^limit"); }

/* tf#7508, tf#21943: an input map for x is not one for ^x. */
static void input_map_and_controls(void) {
    for (int remap = 0; remap < 2; ++remap) {
        TF_Output mine = float_constant(graph, remap ? "mine_2" : "mine", 2);
        Message def = {0}, x = node_def("x", "Const", NO_INPUTS), value = {0}, entry = {0}, scalar = {0};
        attr_number(&x, "dtype", 6, TF_FLOAT);
        message_int(&scalar, 1, TF_FLOAT);
        Message shape = {0};
        message_part(&scalar, 2, &shape);
        message_bytes(&scalar, 4, "\0\0\x80?", 4);
        message_part(&value, 8, &scalar);
        message_text(&entry, 1, "value");
        message_part(&entry, 2, &value);
        message_part(&x, 5, &entry);
        message_part(&def, 1, &x);
        Message negated = node_def("negated", "Neg", INPUTS("x", "^x"));
        attr_number(&negated, "T", 6, TF_FLOAT);
        message_part(&def, 1, &negated);
        TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
        TF_ImportGraphDefOptionsSetPrefix(options, remap ? "both" : "data");
        TF_ImportGraphDefOptionsAddInputMapping(options, "x", 0, mine);
        if (remap) TF_ImportGraphDefOptionsRemapControlDependency(options, "x", mine.oper);
        import_message("import", &def, options);
        TF_DeleteImportGraphDefOptions(options);
        TF_Output result = {TF_GraphOperationByName(graph, remap ? "both/negated" : "data/negated"), 0};
        if (result.oper) fetch("negated", result);
    }
    print_graph(graph);
}

/* A SavedModel with a meta graph of these tags and this graph; more fields of the meta graph may follow in `rest`. */
static void write_model(const char* folder, const char* const* tags, int n_tags, TF_Buffer* graph_def, Message* rest) {
    Message model = {0}, meta_graph = {0}, info = {0};
    for (int i = 0; i < n_tags; ++i) message_text(&info, 4, tags[i]);
    message_part(&meta_graph, 1, &info);
    message_bytes(&meta_graph, 2, graph_def->data, graph_def->length);
    size_t length = meta_graph.length + (rest ? rest->length : 0);
    uint8_t* bytes = malloc(length);
    memcpy(bytes, meta_graph.data, meta_graph.length);
    if (rest) memcpy(bytes + meta_graph.length, rest->data, rest->length);
    message_int(&model, 1, 1);
    message_bytes(&model, 2, bytes, length);
    message_free(&meta_graph);
    free(bytes);
    char path[256];
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/saved_model.pb", folder);
    write_file(path, model.data, model.length);
    message_free(&model);
}

static TF_Session* load(const char* what, const char* folder, const char* const* tags, int n_tags, TF_Graph* into) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* loaded =
        TF_LoadSessionFromSavedModel(options, NULL, folder, tags, n_tags, into, NULL, fresh(status));
    print_status(what, status);
    TF_DeleteSessionOptions(options);
    return loaded;
}

/* tfjs#5161 and others: the set of tags must match, in any order. */
static void tags_in_any_order(void) {
    TF_Graph* source = TF_NewGraph();
    float_constant(source, "x", 3);
    TF_Buffer* graph_def = exported(source);
    const char* const tags[] = {"serve", "gpu", "train"};
    const char* const other_order[] = {"train", "serve", "gpu"};
    write_model("three_tags", tags, 3, graph_def, NULL);
    static const int COUNTS[] = {3, 2, 1, 0};
    for (int i = 0; i < N_ELEMENTS(COUNTS); ++i) {
        TF_Graph* into = TF_NewGraph();
        TF_Session* loaded = load(i ? "fewer" : "another order", "three_tags", other_order, COUNTS[i], into);
        if (loaded) {
            TF_Output x = {TF_GraphOperationByName(into, "x"), 0};
            run_and_print("x", loaded, NOTHING, NULL, x, NULL);
            delete_session(loaded);
        }
        TF_DeleteGraph(into);
    }
    TF_DeleteBuffer(graph_def);
    TF_DeleteGraph(source);
}

/* tf#9952, tract#750: a SavedModel given where a GraphDef should be. */
static void model_as_graph_def(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s/patterns_saved_model/saved_model.pb", data_folder());
    TF_Buffer* buffer = read_file(path, -1);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, buffer, options, fresh(status));
    print_status("import", status);
    no_op(graph, "still_usable");
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(buffer);
}

/* tf#18819, tf#46129: a table whose file is an asset; the model names the op that fills it. */
static void model_with_an_asset(void) {
    TF_Graph* source = TF_NewGraph();
    TF_OperationDescription* description = TF_NewOperation(source, "HashTableV2", "table");
    TF_SetAttrType(description, "key_dtype", TF_STRING);
    TF_SetAttrType(description, "value_dtype", TF_INT64);
    TF_SetAttrString(description, "shared_name", "words", 5);
    TF_Output table = finish(description);
    TF_Output file = constant(source, "file", string_scalar("not the real one"));
    description = TF_NewOperation(source, "InitializeTableFromTextFileV2", "fill");
    TF_AddInput(description, table);
    TF_AddInput(description, file);
    TF_SetAttrInt(description, "key_index", -2);
    TF_SetAttrInt(description, "value_index", -1);
    finish(description);
    const int64_t missing = -1;
    const char* const asked[] = {"three", "seven", "one"};
    description = TF_NewOperation(source, "LookupTableFindV2", "find");
    TF_AddInput(description, table);
    TF_AddInput(description, constant(source, "asked", string_vector(3, asked)));
    TF_AddInput(description, constant(source, "default", tensor_of(TF_INT64, 0, NULL, &missing)));
    finish(description);
    TF_Buffer* graph_def = exported(source);
    /* meta graph: collection saved_model_main_op (4), asset_file_def (6) */
    Message rest = {0}, entry = {0}, collection = {0}, list = {0}, asset = {0}, info = {0};
    message_text(&list, 1, "fill");
    message_part(&collection, 1, &list);
    message_text(&entry, 1, "saved_model_main_op");
    message_part(&entry, 2, &collection);
    message_part(&rest, 4, &entry);
    message_text(&info, 1, "file:0");
    message_part(&asset, 1, &info);
    message_text(&asset, 2, "words.txt");
    message_part(&rest, 6, &asset);
    const char* const tags[] = {"serve"};
    write_model("with_asset", tags, 1, graph_def, &rest);
    message_free(&rest);
    mkdir("with_asset/assets", 0777);
    for (int with_file = 0; with_file < 2; ++with_file) {
        if (with_file) write_file("with_asset/assets/words.txt", "one\ntwo\nthree\n", 14);
        TF_Graph* into = TF_NewGraph();
        TF_Session* loaded = load(with_file ? "asset" : "no asset", "with_asset", tags, 1, into);
        if (loaded) {
            TF_Output find = {TF_GraphOperationByName(into, "find"), 0};
            run_and_print("find", loaded, NOTHING, NULL, find, NULL);
            delete_session(loaded);
        }
        TF_DeleteGraph(into);
    }
    TF_DeleteBuffer(graph_def);
    TF_DeleteGraph(source);
}

/* tf#19348: the name of a checkpoint is its prefix, not one of its files. */
static void checkpoint_by_a_file_of_it(void) {
    TF_Output prefix = placeholder(graph, "prefix", TF_STRING);
    const char* const names[] = {"v"};
    const char* const slices[] = {""};
    TF_Output name = constant(graph, "names", string_vector(1, names));
    TF_Output slice = constant(graph, "slices", string_vector(1, slices)), value = float_constant(graph, "v", 5);
    TF_OperationDescription* description = TF_NewOperation(graph, "SaveV2", "save");
    TF_AddInput(description, prefix);
    TF_AddInput(description, name);
    TF_AddInput(description, slice);
    TF_AddInputList(description, &value, 1);
    run_and_print("save", session, prefix, string_scalar("saved"), NOTHING, finish(description).oper);
    description = TF_NewOperation(graph, "RestoreV2", "restore");
    TF_AddInput(description, prefix);
    TF_AddInput(description, name);
    TF_AddInput(description, slice);
    const TF_DataType types[] = {TF_FLOAT};
    TF_SetAttrTypeList(description, "dtypes", types, 1);
    TF_Output restored = finish(description);
    run_and_print("prefix", session, prefix, string_scalar("saved"), restored, NULL);
    run_and_print("index", session, prefix, string_scalar("saved.index"), restored, NULL);
    run_and_print("data", session, prefix, string_scalar("saved.data-00000-of-00001"), restored, NULL);
    run_and_print("nothing", session, prefix, string_scalar("not_saved"), restored, NULL);
}

/* tf#7967, keras#20414: channels first on a CPU, of constants, which are folded. */
static void constant_convolution_with_channels_first(void) {
    const int64_t dims[] = {1, 1, 4, 4}, filter_dims[] = {1, 1, 1, 1};
    float values[16];
    for (int i = 0; i < 16; ++i) values[i] = (float)i;
    const float two = 2;
    TF_OperationDescription* description = TF_NewOperation(graph, "Conv2D", "conv");
    TF_AddInput(description, constant(graph, "x", tensor_of(TF_FLOAT, 4, dims, values)));
    TF_AddInput(description, constant(graph, "w", tensor_of(TF_FLOAT, 4, filter_dims, &two)));
    TF_SetAttrIntList(description, "strides", (const int64_t[]){1, 1, 1, 1}, 4);
    TF_SetAttrString(description, "padding", "SAME", 4);
    TF_SetAttrString(description, "data_format", "NCHW", 4);
    TF_Output result = finish(description);
    for (int i = 0; i < 5; ++i) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        result = unary(graph, "Neg", name, result);
    }
    fetch("folded", result);
}

/* tf#53950 */
static void function_without_a_name(void) {
    static const char* const NAMES[] = {"", "f"};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) {
        Message def = {0}, library = {0}, function = {0}, signature = {0};
        message_text(&signature, 1, NAMES[i]);
        message_part(&function, 1, &signature);
        message_part(&library, 1, &function);
        message_part(&def, 2, &library);
        TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
        import_message(i ? "named" : "no name", &def, options);
        TF_DeleteImportGraphDefOptions(options);
    }
    printf("%d functions\n", TF_GraphNumFunctions(graph));
}

/* tf#32361 */
static void library_twice(void) {
    for (int i = 0; i < 2; ++i) {
        TF_Library* library = TF_LoadLibrary("libm.so.6", fresh(status));
        print_status("load", status);
        if (!library) continue;
        printf("%zu bytes of ops\n", TF_GetOpList(library).length);
        TF_DeleteLibraryHandle(library);
    }
    TF_Library* library = TF_LoadLibrary("", fresh(status));
    print_code("no name", status);
    if (library) TF_DeleteLibraryHandle(library);
}

/* tf#9826 */
static void dimensions_of_reshape_and_matmul(void) {
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 2, (const int64_t[]){-1, 4});
    TF_Output shape = constant(graph, "shape", int_vector(3, (const int32_t[]){-1, 2, 2}));
    TF_Output w = shaped_placeholder(graph, "w", TF_FLOAT, 2, (const int64_t[]){4, 7});
    TF_Output product = binary(graph, "MatMul", "product", x, w);
    TF_Output outputs[] = {x, binary(graph, "Reshape", "reshaped", x, shape), product,
                           binary(graph, "Reshape", "open", x, placeholder(graph, "any", TF_INT32))};
    for (int i = 0; i < N_ELEMENTS(outputs); ++i) {
        int64_t dims[4] = {0};
        int rank = TF_GraphGetTensorNumDims(graph, outputs[i], fresh(status));
        print_status(TF_OperationName(outputs[i].oper), status);
        printf("rank %d:", rank);
        if (rank > 0) TF_GraphGetTensorShape(graph, outputs[i], dims, rank, fresh(status));
        for (int k = 0; k < rank; ++k) printf(" %lld", (long long)dims[k]);
        printf("\n");
    }
}

/* tf#60456: 6552 is exact in half precision, 65520 is beyond it; bfloat16 rounds to the nearest, ties to even. */
static void halves(void) {
    const float values[] = {6552.0f, 65504.0f, 65519.0f, 65520.0f, -65520.0f, 1.00390625f, 1.01171875f, 1.00390637f};
    TF_Output x = constant(graph, "x", float_vector(N_ELEMENTS(values), values));
    static const TF_DataType TYPES[] = {TF_HALF, TF_BFLOAT16};
    for (int i = 0; i < N_ELEMENTS(TYPES); ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, "Cast", i ? "to_bfloat16" : "to_half");
        TF_AddInput(description, x);
        TF_SetAttrType(description, "DstT", TYPES[i]);
        TF_Output y = finish(description);
        TF_Tensor* result = NULL;
        TF_SessionRun(session, NULL, NULL, NULL, 0, &y, &result, 1, NULL, 0, NULL, fresh(status));
        print_status(TF_OperationName(y.oper), status);
        const uint16_t* bits = result ? TF_TensorData(result) : NULL;
        for (int k = 0; bits && k < N_ELEMENTS(values); ++k) printf(" %04x", bits[k]);
        printf("\n");
        TF_DeleteTensor(result);
    }
}

IN_NEW_SESSION(halves)
IN_NEW_SESSION(shapes_of_a_queue)
IN_NEW_SESSION(assign_in_every_turn)
IN_NEW_SESSION(assign_also_in_the_last_turn)
IN_NEW_SESSION(input_map_and_controls)
IN_NEW_SESSION(tags_in_any_order)
IN_NEW_SESSION(model_as_graph_def)
IN_NEW_SESSION(model_with_an_asset)
IN_NEW_SESSION(checkpoint_by_a_file_of_it)
IN_NEW_SESSION(constant_convolution_with_channels_first)
IN_NEW_SESSION(function_without_a_name)
IN_NEW_SESSION(library_twice)
IN_NEW_SESSION(dimensions_of_reshape_and_matmul)

static const Case CASES[] = {
    CASE(halves),
    CASE(shapes_of_a_queue),
    CASE(assign_in_every_turn),
    CASE(assign_also_in_the_last_turn),
    CASE(input_map_and_controls),
    CASE(tags_in_any_order),
    CASE(model_as_graph_def),
    CASE(model_with_an_asset),
    CASE(checkpoint_by_a_file_of_it),
    CASE(constant_convolution_with_channels_first),
    CASE(function_without_a_name),
    CASE(library_twice),
    CASE(dimensions_of_reshape_and_matmul),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
