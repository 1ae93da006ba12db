/* Building graphs: what is accepted, what is inferred, and the texts of the errors. */
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/print_graph.h"

static TF_Graph* graph;

static TF_OperationDescription* begin(const char* op, const char* name) { return TF_NewOperation(graph, op, name); }

static void add(TF_OperationDescription* description, TF_Output input) { TF_AddInput(description, input); }

static void duplicate_name(void) {
    placeholder(graph, "x", TF_FLOAT);
    TF_OperationDescription* description = begin("Placeholder", "x");
    TF_SetAttrType(description, "dtype", TF_INT32);
    finish_and_print(description, "second x");
    finish_and_print(begin("NoOp", "still_usable"), "still_usable");
    printf("x is still a %s\n", TF_OperationOpType(TF_GraphOperationByName(graph, "x")));
}

static void names(void) {
    static const char* const NAMES[] = {"a",  "A.b", "a/b/c", "a-b", "a\\b", "_private",   "-a",
                                        "/a", "",    "a b",   "a:0", "^a",   "a$",         ".a",
                                        "1",  "a>b", ">a",    "a/",  "a//b", "caf\xc3\xa9"};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) finish_and_print(begin("NoOp", NAMES[i]), NAMES[i]);
}

static void unknown_op(void) { finish_and_print(begin("NoSuchOp", "x"), "NoSuchOp"); }

static void missing_attr(void) {
    finish_and_print(begin("Placeholder", "no_dtype"), "Placeholder");
    finish_and_print(begin("Const", "no_value"), "Const");
    TF_OperationDescription* description = begin("Const", "no_value_2");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    finish_and_print(description, "Const with dtype");
}

static void unknown_attr(void) {
    TF_OperationDescription* description = begin("NoOp", "n");
    TF_SetAttrInt(description, "nonsense", 1);
    finish_and_print(description, "unknown");
    description = begin("NoOp", "m");
    TF_SetAttrInt(description, "_underscore", 1);
    finish_and_print(description, "underscore");
}

static void wrong_attr_kind(void) {
    TF_OperationDescription* description = begin("Placeholder", "p");
    TF_SetAttrInt(description, "dtype", 1);
    finish_and_print(description, "int for a type");
    description = begin("Placeholder", "q");
    const TF_DataType types[] = {TF_FLOAT};
    TF_SetAttrTypeList(description, "dtype", types, 1);
    finish_and_print(description, "list for a type");
    description = begin("Placeholder", "r");
    TF_SetAttrString(description, "dtype", "float", 5);
    finish_and_print(description, "string for a type");
    description = begin("Placeholder", "s");
    TF_SetAttrType(description, "dtype", (TF_DataType)99);
    finish_and_print(description, "no such type");
    description = begin("Placeholder", "t");
    TF_SetAttrType(description, "dtype", (TF_DataType)0);
    finish_and_print(description, "type 0");
}

static void number_of_inputs(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    finish_and_print(begin("AddV2", "none"), "none of two");
    TF_OperationDescription* description = begin("AddV2", "one");
    add(description, x);
    finish_and_print(description, "one of two");
    description = begin("AddV2", "three");
    for (int i = 0; i < 3; ++i) add(description, x);
    finish_and_print(description, "three for two");
    description = begin("NoOp", "noop");
    add(description, x);
    finish_and_print(description, "one for none");
}

static void input_types(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), i = placeholder(graph, "i", TF_INT32);
    TF_Output s = placeholder(graph, "s", TF_STRING), b = placeholder(graph, "b", TF_BOOL);
    TF_OperationDescription* description = begin("AddV2", "mixed");
    add(description, x);
    add(description, i);
    finish_and_print(description, "float and int32");
    description = begin("AddV2", "strings");
    add(description, s);
    add(description, s);
    finish_and_print(description, "AddV2 of strings");
    description = begin("Add", "strings_1");
    add(description, s);
    add(description, s);
    finish_and_print(description, "Add of strings");
    description = begin("MatMul", "bools");
    add(description, b);
    add(description, b);
    finish_and_print(description, "MatMul of bools");
    description = begin("LogicalNot", "not_float");
    add(description, x);
    finish_and_print(description, "LogicalNot of float");
    description = begin("AddV2", "conflict");
    add(description, x);
    add(description, x);
    TF_SetAttrType(description, "T", TF_INT32);
    finish_and_print(description, "T contradicts inputs");
    description = begin("AddV2", "agree");
    TF_SetAttrType(description, "T", TF_FLOAT);
    add(description, x);
    add(description, x);
    finish_and_print(description, "T agrees");
}

static void output_index(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_Output beyond = {x.oper, 1};
    TF_OperationDescription* description = begin("Neg", "beyond");
    add(description, beyond);
    finish_and_print(description, "output 1 of a placeholder");
    TF_Output nothing = {no_op(graph, "n"), 0};
    description = begin("Neg", "of_noop");
    add(description, nothing);
    finish_and_print(description, "output 0 of a NoOp");
}

static void lists(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), i = placeholder(graph, "i", TF_INT32);
    const TF_Output xs[] = {x, x, x}, mixed[] = {x, i};
    TF_OperationDescription* description = begin("AddN", "three");
    TF_AddInputList(description, xs, 3);
    TF_Output sum = finish_and_print(description, "AddN");
    TF_Status* status = TF_NewStatus();
    int64_t n = 0;
    if (sum.oper) TF_OperationGetAttrInt(sum.oper, "N", &n, status);
    printf("N = %lld\n", (long long)n);
    description = begin("AddN", "empty");
    TF_AddInputList(description, xs, 0);
    finish_and_print(description, "AddN of nothing");
    description = begin("AddN", "mixed");
    TF_AddInputList(description, mixed, 2);
    finish_and_print(description, "AddN of float and int32");
    description = begin("AddN", "single");
    add(description, x);
    finish_and_print(description, "TF_AddInput for a list");
    description = begin("Neg", "list_for_one");
    TF_AddInputList(description, xs, 1);
    finish_and_print(description, "TF_AddInputList for one");
    description = begin("IdentityN", "both");
    TF_AddInputList(description, mixed, 2);
    finish_and_print(description, "IdentityN of float and int32");
    description = begin("AddN", "n_contradicts");
    TF_AddInputList(description, xs, 3);
    TF_SetAttrInt(description, "N", 2);
    finish_and_print(description, "N contradicts");
    description = begin("Pack", "n_and_axis");
    TF_AddInputList(description, xs, 2);
    TF_SetAttrInt(description, "axis", -1);
    finish_and_print(description, "Pack");
    TF_DeleteStatus(status);
    print_graph(graph);
}

static void attr_limits(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), axis = int_constant(graph, "axis", 0);
    TF_OperationDescription* description = begin("Split", "split_0");
    add(description, axis);
    add(description, x);
    TF_SetAttrInt(description, "num_split", 0);
    finish_and_print(description, "num_split 0");
    const int64_t strides[] = {1, 1, 1, 1};
    description = begin("Conv2D", "padding");
    add(description, x);
    add(description, x);
    TF_SetAttrIntList(description, "strides", strides, 4);
    TF_SetAttrString(description, "padding", "WRONG", 5);
    finish_and_print(description, "padding WRONG");
    description = begin("MaxPool", "ksize");
    add(description, x);
    TF_SetAttrIntList(description, "strides", strides, 4);
    TF_SetAttrIntList(description, "ksize", strides, 3);
    TF_SetAttrString(description, "padding", "SAME", 4);
    finish_and_print(description, "ksize of 3");
}

static void shape_errors(void) {
    const int64_t a[] = {2, 3}, b[] = {2, 4}, vector[] = {3};
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 2, a), y = shaped_placeholder(graph, "y", TF_FLOAT, 2, b);
    TF_Output v = shaped_placeholder(graph, "v", TF_FLOAT, 1, vector);
    TF_OperationDescription* description = begin("MatMul", "matmul");
    add(description, x);
    add(description, y);
    finish_and_print(description, "MatMul");
    description = begin("MatMul", "matmul_rank");
    add(description, x);
    add(description, v);
    finish_and_print(description, "MatMul of a vector");
    description = begin("AddV2", "add");
    add(description, x);
    add(description, y);
    finish_and_print(description, "AddV2");
    description = begin("BiasAdd", "bias");
    add(description, y);
    add(description, v);
    finish_and_print(description, "BiasAdd");
    const int32_t wrong[] = {7, 7};
    description = begin("Reshape", "reshape");
    add(description, x);
    add(description, constant(graph, "shape", int_vector(2, wrong)));
    finish_and_print(description, "Reshape");
    description = begin("ConcatV2", "concat");
    const TF_Output parts[] = {x, y};
    TF_AddInputList(description, parts, 2);
    add(description, int_constant(graph, "axis", 0));
    finish_and_print(description, "ConcatV2");
    finish_and_print(begin("NoOp", "usable"), "still usable");
    print_graph(graph);
}

static void control_inputs(void) {
    TF_Operation* n = no_op(graph, "n");
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_OperationDescription* description = begin("Identity", "y");
    add(description, x);
    TF_AddControlInput(description, n);
    TF_AddControlInput(description, n);
    TF_AddControlInput(description, x.oper);
    finish_and_print(description, "y");
    print_graph(graph);
}

static void devices_and_colocation(void) {
    TF_OperationDescription* description = begin("NoOp", "cpu");
    TF_SetDevice(description, "/device:CPU:0");
    finish_and_print(description, "cpu");
    description = begin("NoOp", "gpu");
    TF_SetDevice(description, "/job:worker/task:3/gpu:1");
    finish_and_print(description, "gpu");
    description = begin("NoOp", "nonsense");
    TF_SetDevice(description, "a nonsensical device");
    finish_and_print(description, "nonsense");
    TF_Operation* anchor = no_op(graph, "anchor");
    TF_Operation* other = no_op(graph, "other");
    description = begin("NoOp", "with");
    TF_ColocateWith(description, anchor);
    TF_ColocateWith(description, other);
    TF_ColocateWith(description, anchor);
    finish_and_print(description, "with");
    print_graph(graph);
}

static void defaults_are_filled(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    binary(graph, "MatMul", "matmul", x, x);
    unary(graph, "Relu", "relu", x);
    TF_OperationDescription* description = begin("VarHandleOp", "var");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrShape(description, "shape", NULL, 0);
    finish(description);
    print_graph(graph);
}

static void lookup_and_iteration(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    unary(graph, "Neg", "y", x);
    no_op(graph, "z");
    printf("x %d, missing %d, empty %d\n", TF_GraphOperationByName(graph, "x") == x.oper,
           TF_GraphOperationByName(graph, "missing") != NULL, TF_GraphOperationByName(graph, "") != NULL);
    size_t position = 0;
    for (TF_Operation* operation; (operation = TF_GraphNextOperation(graph, &position));) {
        printf("%s %s\n", TF_OperationName(operation), TF_OperationOpType(operation));
    }
    printf("at the end: %d\n", TF_GraphNextOperation(graph, &position) == NULL);
}

static void in_new_graph(void (*body)(void)) {
    graph = TF_NewGraph();
    body();
    TF_DeleteGraph(graph);
}

#define IN_NEW_GRAPH(body) \
    static void run_##body(void) { in_new_graph(body); }

IN_NEW_GRAPH(duplicate_name)
IN_NEW_GRAPH(names)
IN_NEW_GRAPH(unknown_op)
IN_NEW_GRAPH(missing_attr)
IN_NEW_GRAPH(unknown_attr)
IN_NEW_GRAPH(wrong_attr_kind)
IN_NEW_GRAPH(number_of_inputs)
IN_NEW_GRAPH(input_types)
IN_NEW_GRAPH(output_index)
IN_NEW_GRAPH(lists)
IN_NEW_GRAPH(attr_limits)
IN_NEW_GRAPH(shape_errors)
IN_NEW_GRAPH(control_inputs)
IN_NEW_GRAPH(devices_and_colocation)
IN_NEW_GRAPH(defaults_are_filled)
IN_NEW_GRAPH(lookup_and_iteration)

static const Case CASES[] = {
    {"duplicate_name", run_duplicate_name},
    {"names", run_names},
    {"unknown_op", run_unknown_op},
    {"missing_attr", run_missing_attr},
    {"unknown_attr", run_unknown_attr},
    {"wrong_attr_kind", run_wrong_attr_kind},
    {"number_of_inputs", run_number_of_inputs},
    {"input_types", run_input_types},
    {"output_index", run_output_index},
    {"lists", run_lists},
    {"attr_limits", run_attr_limits},
    {"shape_errors", run_shape_errors},
    {"control_inputs", run_control_inputs},
    {"devices_and_colocation", run_devices_and_colocation},
    {"defaults_are_filled", run_defaults_are_filled},
    {"lookup_and_iteration", run_lookup_and_iteration},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
