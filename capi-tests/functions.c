/* Functions: made from graphs, copied, serialized, imported, and called. */
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/print_graph.h"

static TF_Status* status;

/* Makes name(a, b) = (a + b) * a; `keep` holds its body's graph, which the caller deletes. */
static TF_Function* make_function(const char* name, TF_Graph* body) {
    TF_Output a = placeholder(body, "a", TF_FLOAT), b = placeholder(body, "b", TF_FLOAT);
    TF_Output sum = binary(body, "AddV2", "sum", a, b), product = binary(body, "Mul", "product", sum, a);
    const TF_Output inputs[] = {a, b};
    TF_Function* function = TF_GraphToFunction(body, name, 0, -1, NULL, 2, inputs, 1, &product, NULL, NULL,
                                               "adds and multiplies", fresh(status));
    print_status("to function", status);
    return function;
}

static void print_function(const char* what, TF_Function* function) {
    if (!function) {
        printf("%s: NULL\n", what);
        return;
    }
    printf("%s is named %s\n", what, TF_FunctionName(function));
    TF_Buffer* buffer = TF_NewBuffer();
    TF_FunctionToFunctionDef(function, buffer, fresh(status));
    print_status(what, status);
    print_function_def(buffer->data, buffer->length);
    TF_DeleteBuffer(buffer);
}

static void basics(void) {
    TF_Graph* body = TF_NewGraph();
    TF_Function* function = make_function("my_function", body);
    print_function("function", function);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
}

static TF_Output call(TF_Graph* graph, const char* op, const char* name, TF_Output a, TF_Output b) {
    TF_OperationDescription* description = TF_NewOperation(graph, op, name);
    TF_AddInput(description, a);
    TF_AddInput(description, b);
    return finish_and_print(description, name);
}

static void called_by_its_name(void) {
    TF_Graph *body = TF_NewGraph(), *graph = TF_NewGraph();
    TF_Function* function = make_function("my_function", body);
    TF_GraphCopyFunction(graph, function, NULL, fresh(status));
    print_status("copy", status);
    TF_GraphCopyFunction(graph, function, NULL, fresh(status));
    print_status("copy again", status);
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_Output result = call(graph, "my_function", "call", x, float_constant(graph, "two", 2));
    TF_Session* session = new_session(graph);
    run_and_print("run", session, x, float_scalar(5), result, NULL);
    print_graph(graph);
    delete_session(session);
    TF_DeleteFunction(function);
    TF_DeleteGraph(graph);
    TF_DeleteGraph(body);
}

static void called_by_partitioned_call(void) {
    TF_Graph *body = TF_NewGraph(), *graph = TF_NewGraph();
    TF_Function* function = make_function("my_function", body);
    TF_GraphCopyFunction(graph, function, NULL, fresh(status));
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    static const char* const OPS[] = {"PartitionedCall", "StatefulPartitionedCall"};
    TF_Session* session = new_session(graph);
    for (int i = 0; i < 2; ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, OPS[i], OPS[i]);
        const TF_Output inputs[] = {x, x};
        const TF_DataType types[] = {TF_FLOAT};
        TF_AddInputList(description, inputs, 2);
        TF_SetAttrTypeList(description, "Tout", types, 1);
        TF_SetAttrFuncName(description, "f", "my_function", 11);
        TF_Output result = finish_and_print(description, OPS[i]);
        run_and_print(OPS[i], session, x, float_scalar(3), result, NULL);
    }
    delete_session(session);
    TF_DeleteFunction(function);
    TF_DeleteGraph(graph);
    TF_DeleteGraph(body);
}

static void missing_function(void) {
    TF_Graph* graph = TF_NewGraph();
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_OperationDescription* description = TF_NewOperation(graph, "PartitionedCall", "call");
    const TF_DataType types[] = {TF_FLOAT};
    TF_AddInputList(description, &x, 1);
    TF_SetAttrTypeList(description, "Tout", types, 1);
    TF_SetAttrFuncName(description, "f", "nowhere", 7);
    TF_Output result = finish_and_print(description, "call");
    TF_Session* session = new_session(graph);
    TF_Tensor *feed = float_scalar(3), *value = NULL;
    TF_SessionRun(session, NULL, &x, &feed, 1, &result, &value, 1, NULL, 0, NULL, fresh(status));
    print_code("run", status); /* the text ends with a part that changes from run to run */
    printf("names it: %d\n", strstr(TF_Message(status), "Failed to find function \"nowhere\"") != NULL);
    TF_DeleteTensor(feed);
    TF_DeleteTensor(value);
    delete_session(session);
    TF_DeleteGraph(graph);
}

static void graph_functions(void) {
    TF_Graph *body = TF_NewGraph(), *other = TF_NewGraph(), *graph = TF_NewGraph();
    TF_Function *f = make_function("f", body), *g = make_function("g", other);
    printf("%d\n", TF_GraphNumFunctions(graph));
    TF_GraphCopyFunction(graph, f, NULL, fresh(status));
    TF_GraphCopyFunction(graph, g, NULL, fresh(status));
    printf("%d\n", TF_GraphNumFunctions(graph));
    TF_Function* found[3] = {NULL, NULL, NULL};
    int count = TF_GraphGetFunctions(graph, found, 3, fresh(status));
    print_status("get", status);
    printf("%d: %c%c\n", count, *TF_FunctionName(found[0]), *TF_FunctionName(found[1]));
    TF_DeleteFunction(found[0]);
    TF_DeleteFunction(found[1]);
    count = TF_GraphGetFunctions(graph, found, 1, fresh(status));
    printf("room for 1: %d\n", count);
    TF_DeleteFunction(found[0]);
    TF_DeleteFunction(f);
    TF_DeleteFunction(g);
    TF_DeleteGraph(graph);
    TF_DeleteGraph(other);
    TF_DeleteGraph(body);
}

static void different_functions_of_one_name(void) {
    TF_Graph *body = TF_NewGraph(), *other = TF_NewGraph(), *graph = TF_NewGraph();
    TF_Function* f = make_function("f", body);
    TF_Output a = placeholder(other, "a", TF_FLOAT), negated = unary(other, "Neg", "n", a);
    TF_Function* g = TF_GraphToFunction(other, "f", 0, -1, NULL, 1, &a, 1, &negated, NULL, NULL, NULL, fresh(status));
    TF_GraphCopyFunction(graph, f, NULL, fresh(status));
    print_status("first", status);
    TF_GraphCopyFunction(graph, g, NULL, fresh(status));
    print_status("second", status);
    printf("%d\n", TF_GraphNumFunctions(graph));
    TF_DeleteFunction(f);
    TF_DeleteFunction(g);
    TF_DeleteGraph(graph);
    TF_DeleteGraph(other);
    TF_DeleteGraph(body);
}

static void copy_nothing(void) {
    TF_Graph* graph = TF_NewGraph();
    TF_GraphCopyFunction(graph, NULL, NULL, fresh(status));
    print_status("copy", status);
    TF_DeleteGraph(graph);
}

static void serialized_and_back(void) {
    TF_Graph *body = TF_NewGraph(), *graph = TF_NewGraph();
    TF_Function* function = make_function("my_function", body);
    TF_Buffer* buffer = TF_NewBuffer();
    TF_FunctionToFunctionDef(function, buffer, fresh(status));
    TF_Function* copy = TF_FunctionImportFunctionDef(buffer->data, buffer->length, fresh(status));
    print_status("import", status);
    print_function("copy", copy);
    TF_GraphCopyFunction(graph, copy, NULL, fresh(status));
    print_status("into a graph", status);
    TF_Function* garbage = TF_FunctionImportFunctionDef("no function", 11, fresh(status));
    print_status("garbage", status);
    printf("%s\n", garbage ? "a function" : "NULL");
    TF_DeleteFunction(copy);
    TF_DeleteFunction(function);
    TF_DeleteBuffer(buffer);
    TF_DeleteGraph(graph);
    TF_DeleteGraph(body);
}

static void exported_graph_with_functions(void) {
    TF_Graph *body = TF_NewGraph(), *graph = TF_NewGraph(), *copy = TF_NewGraph();
    TF_Function* function = make_function("my_function", body);
    TF_GraphCopyFunction(graph, function, NULL, fresh(status));
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    call(graph, "my_function", "call", x, x);
    TF_Buffer* buffer = exported(graph);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(copy, buffer, options, fresh(status));
    print_status("import", status);
    print_graph(copy);
    TF_Session* session = new_session(copy);
    TF_Output input = {TF_GraphOperationByName(copy, "x"), 0}, output = {TF_GraphOperationByName(copy, "call"), 0};
    run_and_print("run", session, input, float_scalar(4), output, NULL);
    delete_session(session);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(buffer);
    TF_DeleteFunction(function);
    TF_DeleteGraph(copy);
    TF_DeleteGraph(graph);
    TF_DeleteGraph(body);
}

static void value_attributes(void) {
    TF_Graph* body = TF_NewGraph();
    TF_Function* function = make_function("my_function", body);
    TF_FunctionSetAttrValueProto(function, "_noinline", "\x28\x01", 2, fresh(status));
    print_status("set", status);
    TF_FunctionSetAttrValueProto(function, "_bad", "\xff\xff", 2, fresh(status));
    print_status("set garbage", status);
    TF_Buffer* buffer = TF_NewBuffer();
    TF_FunctionGetAttrValueProto(function, "_noinline", buffer, fresh(status));
    print_status("get", status);
    print_attr_value(buffer->data, buffer->length);
    printf("\n");
    TF_DeleteBuffer(buffer);
    buffer = TF_NewBuffer();
    TF_FunctionGetAttrValueProto(function, "_missing", buffer, fresh(status));
    print_status("get a missing one", status);
    TF_DeleteBuffer(buffer);
    print_function("function", function);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
}

static void try_make(const char* what, TF_Graph* body, const char* name, int n_operations,
                     const TF_Operation* const* operations, int n_inputs, const TF_Output* inputs, int n_outputs,
                     const TF_Output* outputs, const char* const* output_names) {
    TF_Function* function = TF_GraphToFunction(body, name, 0, n_operations, operations, n_inputs, inputs, n_outputs,
                                               outputs, output_names, NULL, NULL, fresh(status));
    print_status(what, status);
    if (function) print_function(what, function);
    TF_DeleteFunction(function);
}

static void variations(void) {
    TF_Graph* body = TF_NewGraph();
    TF_Output a = placeholder(body, "a", TF_FLOAT), b = placeholder(body, "b", TF_FLOAT);
    TF_Output sum = binary(body, "AddV2", "sum", a, b), negated = unary(body, "Neg", "negated", sum);
    const TF_Output both[] = {a, b}, twice[] = {a, a}, results[] = {sum, negated}, same[] = {sum, sum};
    const TF_Operation* const only[] = {sum.oper};
    const char* const names[] = {"first", "second"};
    const char* const equal[] = {"one", "one"};
    const TF_Output beyond = {sum.oper, 3};
    try_make("inner input", body, "f1", -1, NULL, 1, &sum, 1, &negated, NULL);
    try_make("named outputs", body, "f2", -1, NULL, 2, both, 2, results, names);
    try_make("chosen operations", body, "f3", 1, only, 2, both, 1, &sum, NULL);
    try_make("one output twice", body, "f4", -1, NULL, 2, both, 2, same, NULL);
    try_make("input is output", body, "f5", -1, NULL, 2, both, 1, &a, NULL);
    try_make("one input twice", body, "f6", -1, NULL, 2, twice, 1, &sum, NULL);
    try_make("output names equal", body, "f7", -1, NULL, 2, both, 2, results, equal);
    try_make("output out of range", body, "f8", -1, NULL, 2, both, 1, &beyond, NULL);
    try_make("input not listed", body, "f9", -1, NULL, 1, &a, 1, &sum, NULL);
    try_make("operation missing", body, "f10", 1, only, 2, both, 1, &negated, NULL);
    try_make("nothing at all", body, "f11", 0, NULL, 0, NULL, 0, NULL, NULL);
    try_make("bad name", body, "not a name", -1, NULL, 2, both, 1, &sum, NULL);
    TF_DeleteGraph(body);
}

static void hashed_name(void) {
    TF_Graph* body = TF_NewGraph();
    TF_Output a = placeholder(body, "a", TF_FLOAT), negated = unary(body, "Neg", "n", a);
    TF_Function* function =
        TF_GraphToFunction(body, "base", 1, -1, NULL, 1, &a, 1, &negated, NULL, NULL, NULL, fresh(status));
    print_status("to function", status);
    if (function) printf("begins with base_: %d\n", strncmp(TF_FunctionName(function), "base_", 5) == 0);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
}

static void control_outputs(void) {
    TF_Graph* body = TF_NewGraph();
    TF_Output a = placeholder(body, "a", TF_FLOAT), negated = unary(body, "Neg", "n", a);
    TF_OperationDescription* description = TF_NewOperation(body, "Assert", "check");
    TF_AddInput(description, placeholder(body, "ok", TF_BOOL));
    const TF_Output data[] = {a};
    TF_AddInputList(description, data, 1);
    TF_Output check = finish(description);
    const TF_Output inputs[] = {a, {TF_GraphOperationByName(body, "ok"), 0}};
    const TF_Operation* const controls[] = {check.oper};
    const char* const names[] = {"checked"};
    TF_Function* function = TF_GraphToFunctionWithControlOutputs(body, "f", 0, -1, NULL, 2, inputs, 1, &negated, NULL,
                                                                 1, controls, names, NULL, NULL, fresh(status));
    print_status("to function", status);
    print_function("function", function);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
}

static void conditional(void) {
    TF_Graph *yes = TF_NewGraph(), *no = TF_NewGraph(), *graph = TF_NewGraph();
    TF_Output a = placeholder(yes, "a", TF_FLOAT), doubled = binary(yes, "AddV2", "d", a, a);
    TF_Output b = placeholder(no, "b", TF_FLOAT), negated = unary(no, "Neg", "n", b);
    TF_Function* then =
        TF_GraphToFunction(yes, "yes", 0, -1, NULL, 1, &a, 1, &doubled, NULL, NULL, NULL, fresh(status));
    TF_Function* other = TF_GraphToFunction(no, "no", 0, -1, NULL, 1, &b, 1, &negated, NULL, NULL, NULL, fresh(status));
    TF_GraphCopyFunction(graph, then, NULL, fresh(status));
    TF_GraphCopyFunction(graph, other, NULL, fresh(status));
    static const char* const OPS[] = {"StatelessIf", "If"};
    TF_Session* session = new_session(graph);
    TF_Output x = float_constant(graph, "x", 5), condition = placeholder(graph, "condition", TF_BOOL);
    for (int i = 0; i < 2; ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, OPS[i], OPS[i]);
        const TF_DataType types[] = {TF_FLOAT};
        TF_AddInput(description, condition);
        TF_AddInputList(description, &x, 1);
        TF_SetAttrTypeList(description, "Tout", types, 1);
        TF_SetAttrFuncName(description, "then_branch", "yes", 3);
        TF_SetAttrFuncName(description, "else_branch", "no", 2);
        TF_Output result = finish_and_print(description, OPS[i]);
        for (unsigned char value = 0; value < 2; ++value) {
            run_and_print(value ? "true" : "false", session, condition, tensor_of(TF_BOOL, 0, NULL, &value), result,
                          NULL);
        }
    }
    delete_session(session);
    TF_DeleteFunction(then);
    TF_DeleteFunction(other);
    TF_DeleteGraph(graph);
    TF_DeleteGraph(yes);
    TF_DeleteGraph(no);
}

/* while (i < 10) i = i + i */
static void loop(void) {
    TF_Graph *test = TF_NewGraph(), *body = TF_NewGraph(), *graph = TF_NewGraph();
    TF_Output i = placeholder(test, "i", TF_INT32),
              less = binary(test, "Less", "less", i, int_constant(test, "ten", 10));
    TF_Output k = placeholder(body, "k", TF_INT32), doubled = binary(body, "AddV2", "d", k, k);
    TF_Function* condition =
        TF_GraphToFunction(test, "condition", 0, -1, NULL, 1, &i, 1, &less, NULL, NULL, NULL, fresh(status));
    TF_Function* turn =
        TF_GraphToFunction(body, "turn", 0, -1, NULL, 1, &k, 1, &doubled, NULL, NULL, NULL, fresh(status));
    TF_GraphCopyFunction(graph, condition, NULL, fresh(status));
    TF_GraphCopyFunction(graph, turn, NULL, fresh(status));
    static const char* const OPS[] = {"StatelessWhile", "While"};
    TF_Session* session = new_session(graph);
    TF_Output x = placeholder(graph, "x", TF_INT32);
    for (int o = 0; o < 2; ++o) {
        TF_OperationDescription* description = TF_NewOperation(graph, OPS[o], OPS[o]);
        TF_AddInputList(description, &x, 1);
        TF_SetAttrFuncName(description, "cond", "condition", 9);
        TF_SetAttrFuncName(description, "body", "turn", 4);
        TF_Output result = finish_and_print(description, OPS[o]);
        run_and_print("from 1", session, x, int_scalar(1), result, NULL);
        run_and_print("from 50", session, x, int_scalar(50), result, NULL);
    }
    delete_session(session);
    TF_DeleteFunction(condition);
    TF_DeleteFunction(turn);
    TF_DeleteGraph(graph);
    TF_DeleteGraph(test);
    TF_DeleteGraph(body);
}

#define WITH_STATUS(body)          \
    static void run_##body(void) { \
        status = TF_NewStatus();   \
        body();                    \
        TF_DeleteStatus(status);   \
    }
#define CASE(body) {#body, run_##body}

WITH_STATUS(basics)
WITH_STATUS(called_by_its_name)
WITH_STATUS(called_by_partitioned_call)
WITH_STATUS(missing_function)
WITH_STATUS(graph_functions)
WITH_STATUS(different_functions_of_one_name)
WITH_STATUS(copy_nothing)
WITH_STATUS(serialized_and_back)
WITH_STATUS(exported_graph_with_functions)
WITH_STATUS(value_attributes)
WITH_STATUS(variations)
WITH_STATUS(hashed_name)
WITH_STATUS(control_outputs)
WITH_STATUS(conditional)
WITH_STATUS(loop)

static const Case CASES[] = {
    CASE(basics),           CASE(called_by_its_name),  CASE(called_by_partitioned_call),
    CASE(missing_function), CASE(graph_functions),     CASE(different_functions_of_one_name),
    CASE(copy_nothing),     CASE(serialized_and_back), CASE(exported_graph_with_functions),
    CASE(value_attributes), CASE(variations),          CASE(hashed_name),
    CASE(control_outputs),  CASE(conditional),         CASE(loop),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
