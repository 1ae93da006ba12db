/* TF_GraphImportGraphDef and its options; export and import again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/print_graph.h"
#include "harness/proto.h"

static TF_Graph* graph;
static TF_Status* status;
static TF_ImportGraphDefOptions* options;

/* x -> neg; two; sum = neg + two, after init. */
static TF_Buffer* small_graph(void) {
    TF_Graph* source = TF_NewGraph();
    TF_Output x = placeholder(source, "x", TF_FLOAT);
    TF_Output neg = unary(source, "Neg", "neg", x);
    TF_Output two = float_constant(source, "two", 2);
    TF_Operation* init = no_op(source, "init");
    TF_OperationDescription* description = TF_NewOperation(source, "AddV2", "sum");
    TF_AddInput(description, neg);
    TF_AddInput(description, two);
    TF_AddControlInput(description, init);
    finish(description);
    description = TF_NewOperation(source, "NoOp", "near_neg");
    TF_ColocateWith(description, neg.oper);
    finish(description);
    TF_Buffer* buffer = exported(source);
    TF_DeleteGraph(source);
    return buffer;
}

static void import(const char* what, const TF_Buffer* buffer) {
    TF_GraphImportGraphDef(graph, buffer, options, fresh(status));
    print_status(what, status);
}

static void import_small(const char* what) {
    TF_Buffer* buffer = small_graph();
    import(what, buffer);
    TF_DeleteBuffer(buffer);
}

static void import_message(const char* what, Message* message) {
    TF_Buffer* buffer = TF_NewBufferFromString(message->data ? (const void*)message->data : "", message->length);
    import(what, buffer);
    TF_DeleteBuffer(buffer);
    message_free(message);
}

static void plain(void) {
    import_small("import");
    print_graph(graph);
    TF_Session* session = new_session(graph);
    TF_Output x = {TF_GraphOperationByName(graph, "x"), 0}, sum = {TF_GraphOperationByName(graph, "sum"), 0};
    run_and_print("run", session, x, float_scalar(5), sum, NULL);
    delete_session(session);
}

static void twice(void) {
    import_small("first");
    import_small("second");
    print_graph(graph);
}

static void prefix(void) {
    TF_ImportGraphDefOptionsSetPrefix(options, "a/b");
    import_small("a/b");
    TF_ImportGraphDefOptionsSetPrefix(options, "slash/");
    import_small("slash/");
    TF_ImportGraphDefOptionsSetPrefix(options, "not good");
    import_small("not good");
    TF_ImportGraphDefOptionsSetPrefix(options, "");
    import_small("empty");
    print_graph(graph);
}

static void same_prefix_twice(void) {
    TF_ImportGraphDefOptionsSetPrefix(options, "p");
    import_small("first");
    import_small("second");
    print_graph(graph);
}

static void same_prefix_with_slash_twice(void) {
    TF_ImportGraphDefOptionsSetPrefix(options, "p/");
    import_small("first");
    import_small("second");
    print_graph(graph);
}

static void prefix_of_an_operation(void) {
    no_op(graph, "taken");
    TF_ImportGraphDefOptionsSetPrefix(options, "taken");
    import_small("taken");
    TF_ImportGraphDefOptionsSetUniquifyPrefix(options, 1);
    import_small("taken, made unique");
    import_small("and again");
    print_graph(graph);
}

static void uniquify_names(void) {
    TF_ImportGraphDefOptionsSetUniquifyNames(options, 1);
    import_small("first");
    import_small("second");
    import_small("third");
    print_graph(graph);
}

static void uniquify_with_prefix(void) {
    TF_ImportGraphDefOptionsSetPrefix(options, "p");
    TF_ImportGraphDefOptionsSetUniquifyPrefix(options, 1);
    import_small("first");
    import_small("second");
    print_graph(graph);
}

static void input_map(void) {
    TF_Output y = float_constant(graph, "y", 7);
    TF_ImportGraphDefOptionsSetPrefix(options, "in");
    TF_ImportGraphDefOptionsAddInputMapping(options, "x", 0, y);
    TF_ImportGraphDefOptionsAddInputMapping(options, "two", 0, y);
    import_small("mapped");
    print_graph(graph);
    TF_Session* session = new_session(graph);
    TF_Output sum = {TF_GraphOperationByName(graph, "in/sum"), 0};
    run_and_print("run", session, NOTHING, NULL, sum, NULL);
    delete_session(session);
}

static void input_map_errors(void) {
    TF_Output y = float_constant(graph, "y", 7), beyond = {y.oper, 3}, wrong = int_constant(graph, "i", 7);
    TF_ImportGraphDefOptionsSetPrefix(options, "a");
    TF_ImportGraphDefOptionsAddInputMapping(options, "x", 0, wrong);
    import_small("mapped to another type");
    TF_DeleteImportGraphDefOptions(options);
    options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsSetPrefix(options, "b");
    TF_ImportGraphDefOptionsAddInputMapping(options, "x", 0, beyond);
    import_small("mapped to no output");
    print_graph(graph);
}

static void unused_mappings(void) {
    TF_Output y = float_constant(graph, "y", 7);
    TF_ImportGraphDefOptionsSetPrefix(options, "in");
    TF_ImportGraphDefOptionsAddInputMapping(options, "x", 0, y);
    TF_ImportGraphDefOptionsAddInputMapping(options, "sum", 0, y);
    TF_ImportGraphDefOptionsAddInputMapping(options, "x", 2, y);
    TF_ImportGraphDefOptionsAddInputMapping(options, "missing", 1, y);
    TF_Buffer* buffer = small_graph();
    TF_ImportGraphDefResults* results = TF_GraphImportGraphDefWithResults(graph, buffer, options, fresh(status));
    print_status("import", status);
    int count = 0;
    const char** names = NULL;
    int* indices = NULL;
    if (results) TF_ImportGraphDefResultsMissingUnusedInputMappings(results, &count, &names, &indices);
    printf("%d unused\n", count);
    int seen = 0;
    for (int i = 0; i < count; ++i) seen += 10 * indices[i] + (int)strlen(names[i]);
    printf("sum %d\n", seen);
    TF_DeleteImportGraphDefResults(results);
    TF_DeleteBuffer(buffer);
}

static void control_dependencies(void) {
    TF_Operation* first = no_op(graph, "first");
    TF_Operation* other = no_op(graph, "other_init");
    TF_ImportGraphDefOptionsSetPrefix(options, "in");
    TF_ImportGraphDefOptionsAddControlDependency(options, first);
    TF_ImportGraphDefOptionsRemapControlDependency(options, "init", other);
    import_small("import");
    print_graph(graph);
}

static void returns(void) {
    TF_ImportGraphDefOptionsSetPrefix(options, "in");
    TF_ImportGraphDefOptionsAddReturnOutput(options, "sum", 0);
    TF_ImportGraphDefOptionsAddReturnOutput(options, "neg", 0);
    TF_ImportGraphDefOptionsAddReturnOperation(options, "init");
    printf("asked for %d outputs, %d operations\n", TF_ImportGraphDefOptionsNumReturnOutputs(options),
           TF_ImportGraphDefOptionsNumReturnOperations(options));
    TF_Buffer* buffer = small_graph();
    TF_ImportGraphDefResults* results = TF_GraphImportGraphDefWithResults(graph, buffer, options, fresh(status));
    print_status("import", status);
    int count = 0;
    TF_Output* outputs = NULL;
    TF_Operation** operations = NULL;
    TF_ImportGraphDefResultsReturnOutputs(results, &count, &outputs);
    for (int i = 0; i < count; ++i) printf("  %s:%d\n", TF_OperationName(outputs[i].oper), outputs[i].index);
    TF_ImportGraphDefResultsReturnOperations(results, &count, &operations);
    for (int i = 0; i < count; ++i) printf("  %s\n", TF_OperationName(operations[i]));
    TF_DeleteImportGraphDefResults(results);
    TF_DeleteBuffer(buffer);
}

static void return_outputs_call(void) {
    TF_ImportGraphDefOptionsAddReturnOutput(options, "sum", 0);
    TF_Buffer* buffer = small_graph();
    TF_Output output = {NULL, -1};
    TF_GraphImportGraphDefWithReturnOutputs(graph, buffer, options, &output, 1, fresh(status));
    print_status("import", status);
    printf("%s:%d\n", output.oper ? TF_OperationName(output.oper) : "NULL", output.index);
    TF_ImportGraphDefOptionsSetPrefix(options, "again");
    TF_GraphImportGraphDefWithReturnOutputs(graph, buffer, options, NULL, 0, fresh(status));
    print_status("room for none", status);
    TF_DeleteBuffer(buffer);
}

static void returns_that_are_mapped(void) {
    TF_Output y = float_constant(graph, "y", 7);
    TF_ImportGraphDefOptionsSetPrefix(options, "in");
    TF_ImportGraphDefOptionsAddInputMapping(options, "x", 0, y);
    TF_ImportGraphDefOptionsAddReturnOutput(options, "x", 0);
    TF_Buffer* buffer = small_graph();
    TF_Output output = {NULL, -1};
    TF_GraphImportGraphDefWithReturnOutputs(graph, buffer, options, &output, 1, fresh(status));
    print_status("import", status);
    printf("%s:%d\n", output.oper ? TF_OperationName(output.oper) : "NULL", output.index);
    TF_DeleteBuffer(buffer);
}

static void returns_that_are_not_there(void) {
    TF_Buffer* buffer = small_graph();
    TF_ImportGraphDefOptionsAddReturnOutput(options, "missing", 0);
    import("output of no node", buffer);
    TF_DeleteImportGraphDefOptions(options);
    options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsAddReturnOutput(options, "sum", 4);
    import("no such output", buffer);
    TF_DeleteImportGraphDefOptions(options);
    options = TF_NewImportGraphDefOptions();
    TF_ImportGraphDefOptionsAddReturnOperation(options, "missing");
    import("no such operation", buffer);
    print_graph(graph);
    TF_DeleteBuffer(buffer);
}

static void default_device(void) {
    TF_ImportGraphDefOptionsSetDefaultDevice(options, "/device:CPU:0");
    import_small("import");
    print_graph(graph);
}

static void add_node(Message* graph_def, const char* name, const char* op, const char* const* inputs, int n_inputs,
                     bool is_float) {
    Message node = {0};
    message_text(&node, 1, name);
    message_text(&node, 2, op);
    for (int i = 0; i < n_inputs; ++i) message_text(&node, 3, inputs[i]);
    if (is_float) {
        Message value = {0}, entry = {0};
        message_int(&value, 6, TF_FLOAT);
        message_text(&entry, 1, strcmp(op, "Placeholder") == 0 ? "dtype" : "T");
        message_part(&entry, 2, &value);
        message_part(&node, 5, &entry);
    }
    message_part(graph_def, 1, &node);
}

static void add_version(Message* graph_def, int producer, int min_consumer) {
    Message versions = {0};
    message_int(&versions, 1, producer);
    if (min_consumer) message_int(&versions, 2, min_consumer);
    message_part(graph_def, 4, &versions);
}

static void defaults_filled(void) {
    Message def = {0};
    add_node(&def, "x", "Placeholder", NULL, 0, true);
    const char* inputs[] = {"x", "x"};
    add_node(&def, "m", "MatMul", inputs, 2, true);
    add_version(&def, 1882, 0);
    import_message("import", &def);
    print_graph(graph);
}

static void malformed(const char* what, const char* op, const char* input, bool is_float) {
    Message def = {0};
    add_node(&def, "x", "Placeholder", NULL, 0, true);
    add_node(&def, "n", op, &input, 1, is_float);
    add_version(&def, 1882, 0);
    import_message(what, &def);
}

static void malformed_inputs(void) {
    malformed("input is missing", "Neg", "nowhere", true);
    malformed("output out of range", "Neg", "x:1", true);
    malformed("index is no number", "Neg", "x:a", true);
    malformed("negative index", "Neg", "x:-1", true);
    malformed("empty name", "Neg", "", true);
    malformed("control only", "Neg", "^x", true);
    malformed("missing control input", "NoOp", "^nowhere", false);
    malformed("too many inputs", "NoOp", "x", false);
    malformed("a cycle of one", "Neg", "n", true);
    malformed("no T", "Neg", "x", false);
    malformed("unknown op", "NoSuchOp", "x", false);
    malformed("index with zeros", "Neg", "x:00", true);
    print_graph(graph);
}

static void malformed_nodes(void) {
    Message def = {0};
    add_node(&def, "twice", "NoOp", NULL, 0, false);
    add_node(&def, "twice", "NoOp", NULL, 0, false);
    import_message("two of one name", &def);
    add_node(&def, "bad name", "NoOp", NULL, 0, false);
    import_message("bad name", &def);
    add_node(&def, "", "NoOp", NULL, 0, false);
    import_message("no name", &def);
    add_node(&def, "no_op", "", NULL, 0, false);
    import_message("no op", &def);
    const char* cycle_a[] = {"b"};
    const char* cycle_b[] = {"a"};
    add_node(&def, "a", "Neg", cycle_a, 1, true);
    add_node(&def, "b", "Neg", cycle_b, 1, true);
    import_message("a cycle of two", &def);
    const char* order[] = {"^c", "d"};
    add_node(&def, "d", "Placeholder", NULL, 0, true);
    add_node(&def, "c", "NoOp", NULL, 0, false);
    add_node(&def, "e", "Neg", order, 2, true);
    import_message("control before data", &def);
    print_graph(graph);
}

static void any_order(void) {
    Message def = {0};
    const char* first[] = {"late"};
    add_node(&def, "early", "Neg", first, 1, true);
    add_node(&def, "late", "Placeholder", NULL, 0, true);
    import_message("consumers first", &def);
    print_graph(graph);
}

static void versions(void) {
    Message def = {0};
    add_node(&def, "a", "NoOp", NULL, 0, false);
    add_version(&def, 100000, 0);
    import_message("producer of the future", &def);
    add_node(&def, "b", "NoOp", NULL, 0, false);
    add_version(&def, 100000, 90000);
    import_message("only for consumers of the future", &def);
    add_node(&def, "c", "NoOp", NULL, 0, false);
    add_version(&def, 5, 0);
    import_message("an old producer", &def);
    print_graph(graph);
    TF_Buffer* buffer = TF_NewBuffer();
    TF_GraphVersions(graph, buffer, fresh(status));
    print_status("versions", status);
    print_bytes(buffer->data, buffer->length);
    printf("\n");
    TF_DeleteBuffer(buffer);
}

static void bad_bytes(void) {
    Message def = {0};
    import_message("empty", &def);
    TF_Buffer* garbage = TF_NewBufferFromString("this is not a graph", 19);
    import("garbage", garbage);
    TF_DeleteBuffer(garbage);
    TF_Buffer* whole = small_graph();
    for (size_t length = 1; length < whole->length; length += 37) {
        TF_Buffer* part = TF_NewBufferFromString(whole->data, length);
        import("truncated", part);
        TF_DeleteBuffer(part);
    }
    TF_DeleteBuffer(whole);
    char path[1024];
    snprintf(path, sizeof path, "%s/patterns_saved_model/saved_model.pb", data_folder());
    TF_Buffer* saved_model = read_file(path, -1);
    if (saved_model) import("a SavedModel", saved_model);
    TF_DeleteBuffer(saved_model);
    print_graph(graph);
}

static void export_and_back(void) {
    import_small("import");
    TF_Buffer* first = exported(graph);
    TF_Graph* copy = TF_NewGraph();
    TF_GraphImportGraphDef(copy, first, options, fresh(status));
    print_status("copy", status);
    TF_Buffer* second = exported(copy);
    printf("first:\n");
    print_graph_def(first);
    printf("second:\n");
    print_graph_def(second);
    TF_DeleteBuffer(first);
    TF_DeleteBuffer(second);
    TF_DeleteGraph(copy);
    TF_Buffer* full = TF_NewBufferFromString("full", 4);
    TF_GraphToGraphDef(graph, full, fresh(status));
    print_status("into a full buffer", status);
    TF_DeleteBuffer(full);
}

static void frozen_model(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s/patterns.pb", data_folder());
    TF_Buffer* buffer = read_file(path, -1);
    import("patterns.pb", buffer);
    print_graph(graph);
    TF_DeleteBuffer(buffer);
}

static void train_graph(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s/train_adam.pb", data_folder());
    TF_Buffer* buffer = read_file(path, -1);
    import("train_adam.pb", buffer);
    print_graph(graph);
    size_t position = 0;
    for (TF_Operation* operation; (operation = TF_GraphNextOperation(graph, &position));) {
        for (int i = 0; i < TF_OperationNumOutputs(operation); ++i) {
            TF_Output output = {operation, i};
            int64_t dims[8] = {0};
            int rank = TF_GraphGetTensorNumDims(graph, output, fresh(status));
            printf("%s:%d rank %d", TF_OperationName(operation), i, rank);
            if (rank >= 0) TF_GraphGetTensorShape(graph, output, dims, rank, fresh(status));
            for (int k = 0; k < rank; ++k) printf(" %lld", (long long)dims[k]);
            printf("\n");
        }
    }
    TF_DeleteBuffer(buffer);
}

static void in_new_graph(void (*body)(void)) {
    graph = TF_NewGraph();
    status = TF_NewStatus();
    options = TF_NewImportGraphDefOptions();
    body();
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteStatus(status);
    TF_DeleteGraph(graph);
}

#define IN_NEW_GRAPH(body) \
    static void run_##body(void) { in_new_graph(body); }
#define CASE(body) {#body, run_##body}

IN_NEW_GRAPH(plain)
IN_NEW_GRAPH(twice)
IN_NEW_GRAPH(prefix)
IN_NEW_GRAPH(same_prefix_twice)
IN_NEW_GRAPH(same_prefix_with_slash_twice)
IN_NEW_GRAPH(prefix_of_an_operation)
IN_NEW_GRAPH(uniquify_names)
IN_NEW_GRAPH(uniquify_with_prefix)
IN_NEW_GRAPH(input_map)
IN_NEW_GRAPH(input_map_errors)
IN_NEW_GRAPH(unused_mappings)
IN_NEW_GRAPH(control_dependencies)
IN_NEW_GRAPH(returns)
IN_NEW_GRAPH(return_outputs_call)
IN_NEW_GRAPH(returns_that_are_mapped)
IN_NEW_GRAPH(returns_that_are_not_there)
IN_NEW_GRAPH(default_device)
IN_NEW_GRAPH(defaults_filled)
IN_NEW_GRAPH(malformed_inputs)
IN_NEW_GRAPH(malformed_nodes)
IN_NEW_GRAPH(any_order)
IN_NEW_GRAPH(versions)
IN_NEW_GRAPH(bad_bytes)
IN_NEW_GRAPH(export_and_back)
IN_NEW_GRAPH(frozen_model)
IN_NEW_GRAPH(train_graph)

static const Case CASES[] = {
    CASE(plain),
    CASE(twice),
    CASE(prefix),
    CASE(same_prefix_twice),
    CASE(same_prefix_with_slash_twice),
    CASE(prefix_of_an_operation),
    CASE(uniquify_names),
    CASE(uniquify_with_prefix),
    CASE(input_map),
    CASE(input_map_errors),
    CASE(unused_mappings),
    CASE(control_dependencies),
    CASE(returns),
    CASE(return_outputs_call),
    CASE(returns_that_are_mapped),
    CASE(returns_that_are_not_there),
    CASE(default_device),
    CASE(defaults_filled),
    CASE(malformed_inputs),
    CASE(malformed_nodes),
    CASE(any_order),
    CASE(versions),
    CASE(bad_bytes),
    CASE(export_and_back),
    CASE(frozen_model),
    CASE(train_graph),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
