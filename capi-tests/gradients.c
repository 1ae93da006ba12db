/* Gradients that the library adds to a graph: their values, their names, what has none, and the errors. Which nodes
 * compute them is not compared: libraries may choose others. */
#include <stdio.h>
#include <string.h>
#include <tensorflow/c/ops.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"

static TF_Output x, y;

/* Adds the gradients and prints the status and which were made. */
static void add(const char* what, int n_ys, TF_Output* ys, int n_xs, TF_Output* xs, TF_Output* incoming,
                TF_Output* results) {
    for (int i = 0; i < n_xs; ++i) results[i] = (TF_Output){x.oper, 77};
    TF_AddGradients(graph, ys, n_ys, xs, n_xs, incoming, fresh(status), results);
    print_status(what, status);
    for (int i = 0; i < n_xs && TF_GetCode(status) == TF_OK; ++i) {
        if (!results[i].oper) printf("%s: none for %d, index %d\n", what, i, results[i].index);
    }
}

/* The gradient of one output with respect to another, run with x = 3 and y = 5. */
static void one(const char* what, TF_Output of, TF_Output with_respect_to) {
    TF_Output result;
    add(what, 1, &of, 1, &with_respect_to, NULL, &result);
    if (TF_GetCode(status) != TF_OK || !result.oper) return;
    const TF_Output inputs[] = {x, y};
    TF_Tensor* feeds[] = {float_scalar(3), float_scalar(5)};
    run(what, 2, inputs, feeds, 1, &result, 0, NULL);
    TF_DeleteTensor(feeds[0]);
    TF_DeleteTensor(feeds[1]);
}

static void two_placeholders(void) {
    x = placeholder(graph, "x", TF_FLOAT);
    y = placeholder(graph, "y", TF_FLOAT);
}

static void sums_and_products(void) {
    two_placeholders();
    static const char* const OPS[] = {"AddV2", "Add", "Sub", "Mul", "RealDiv", "Maximum", "Minimum",
                                      "SquaredDifference", "Pow"};
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) {
        TF_Output z = binary(graph, OPS[i], OPS[i], x, y);
        char what[64];
        snprintf(what, sizeof what, "%s by x", OPS[i]);
        one(what, z, x);
        snprintf(what, sizeof what, "%s by y", OPS[i]);
        one(what, z, y);
    }
}

static void functions_of_one(void) {
    two_placeholders();
    static const char* const OPS[] = {"Neg", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid", "Relu", "Abs",
                                      "Identity", "Sin", "Cos", "Reciprocal", "Softplus", "Elu"};
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) {
        TF_Output z = unary(graph, OPS[i], OPS[i], x), gradient;
        add(OPS[i], 1, &z, 1, &x, NULL, &gradient);
        if (TF_GetCode(status) != TF_OK) continue;
        TF_Tensor *feed = float_scalar(0.5f), *result = NULL;
        TF_SessionRun(session, NULL, &x, &feed, 1, &gradient, &result, 1, NULL, 0, NULL, fresh(status));
        print_status(OPS[i], status);
        if (result) printf("  %.4f\n", *(float*)TF_TensorData(result));
        TF_DeleteTensor(feed);
        TF_DeleteTensor(result);
    }
}

/* relu(a b), summed. */
static void matrices(void) {
    const int64_t dims[] = {2, 2};
    const float left[] = {1, -2, 3, 4}, right[] = {5, 6, -7, 8};
    TF_Output a = constant(graph, "a", tensor_of(TF_FLOAT, 2, dims, left));
    TF_Output b = constant(graph, "b", tensor_of(TF_FLOAT, 2, dims, right));
    TF_Output product = unary(graph, "Relu", "relu", binary(graph, "MatMul", "product", a, b));
    TF_Output inputs[] = {a, b}, gradients[2];
    x = a;
    add("product", 1, &product, 2, inputs, NULL, gradients);
    fetch("by a", gradients[0]);
    fetch("by b", gradients[1]);
    TF_Output sum = binary(graph, "Sum", "sum", product, int_constant(graph, "axis", 0));
    add("sum", 1, &sum, 2, inputs, NULL, gradients);
    fetch("by a", gradients[0]);
    TF_Output weights = constant(graph, "weights", float_vector(2, (const float[]){10, 100}));
    add("weighted", 1, &sum, 2, inputs, &weights, gradients);
    fetch("by a", gradients[0]);
    fetch("by b", gradients[1]);
}

static void several(void) {
    two_placeholders();
    TF_Output z = binary(graph, "Mul", "z", x, y), w = unary(graph, "Square", "w", x);
    TF_Output ys[] = {z, w}, xs[] = {x, y}, gradients[2];
    add("z and w", 2, ys, 2, xs, NULL, gradients);
    const TF_Output inputs[] = {x, y};
    TF_Tensor* feeds[] = {float_scalar(3), float_scalar(5)};
    run("z and w", 2, inputs, feeds, 2, gradients, 0, NULL);
    TF_Output twice[] = {z, z};
    add("z twice", 2, twice, 1, xs, NULL, gradients);
    run("z twice", 2, inputs, feeds, 1, gradients, 0, NULL);
    TF_Output incoming[] = {float_constant(graph, "ten", 10), float_constant(graph, "hundred", 100)};
    add("weighted", 2, ys, 2, xs, incoming, gradients);
    run("weighted", 2, inputs, feeds, 2, gradients, 0, NULL);
    TF_DeleteTensor(feeds[0]);
    TF_DeleteTensor(feeds[1]);
}

static void one_input_twice(void) {
    two_placeholders();
    TF_Output z = binary(graph, "Mul", "z", x, y), xs[] = {x, y, x}, gradients[3];
    add("z", 1, &z, 3, xs, NULL, gradients);
    const TF_Output inputs[] = {x, y};
    TF_Tensor* feeds[] = {float_scalar(3), float_scalar(5)};
    run("z", 2, inputs, feeds, 3, gradients, 0, NULL);
    TF_DeleteTensor(feeds[0]);
    TF_DeleteTensor(feeds[1]);
}

static void of_itself(void) {
    two_placeholders();
    one("x by x", x, x);
    TF_Output z = binary(graph, "Mul", "z", x, x);
    one("x x by x", z, x);
    one("again", z, x);
    TF_Output deep = binary(graph, "Mul", "deep", z, binary(graph, "AddV2", "sum", z, x));
    one("deep by x", deep, x);
    one("deep by z", deep, z);
}

static void second_order(void) {
    two_placeholders();
    TF_Output z = binary(graph, "Mul", "z", x, binary(graph, "Mul", "w", x, x)), first;
    add("first", 1, &z, 1, &x, NULL, &first);
    one("second", first, x);
}

static void nothing_flows(void) {
    two_placeholders();
    TF_Output z = unary(graph, "Square", "z", x), both[] = {x, y}, gradients[2];
    add("y does not matter", 1, &z, 2, both, NULL, gradients);
    add("only y", 1, &z, 1, &y, NULL, gradients);
    TF_Output stopped = binary(graph, "Mul", "stopped", unary(graph, "StopGradient", "stop", x), y);
    add("stopped", 1, &stopped, 2, both, NULL, gradients);
    TF_Output rounded = unary(graph, "Floor", "floor", x);
    add("floor", 1, &rounded, 1, &x, NULL, gradients);
    TF_Output shape = unary(graph, "Shape", "shape", x);
    add("shape", 1, &shape, 1, &x, NULL, gradients);
}

static void integers(void) {
    TF_Output i = placeholder(graph, "i", TF_INT32), square = binary(graph, "Mul", "square", i, i), gradient;
    x = i;
    add("int32", 1, &square, 1, &i, NULL, &gradient);
    run_and_print("int32", session, i, int_scalar(4), gradient, NULL);
}

static void outputs_of_one_node(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "Unpack", "unpack");
    const float values[] = {1, 2, 3};
    x = constant(graph, "v", float_vector(3, values));
    TF_AddInput(description, x);
    TF_SetAttrInt(description, "num", 3);
    TF_Output parts[3], gradient;
    for (int i = 0; i < 3; ++i) parts[i] = (TF_Output){i ? parts[0].oper : finish(description).oper, i};
    TF_Output product = binary(graph, "Mul", "product", parts[0], parts[2]);
    add("0 and 2 of 3", 1, &product, 1, &x, NULL, &gradient);
    fetch("0 and 2 of 3", gradient);
    add("all", 3, parts, 1, &x, NULL, &gradient);
    fetch("all", gradient);
    add("by a part", 1, &product, 1, &parts[2], NULL, &gradient);
    fetch("by a part", gradient);
}

/* Prints the distinct first parts of the names of nodes that came after the first `count`. */
static void print_prefixes(const char* what, int count) {
    char seen[16][64];
    int n_seen = 0;
    size_t position = 0;
    for (TF_Operation* operation; (operation = TF_GraphNextOperation(graph, &position));) {
        if (--count >= 0) continue;
        char part[64];
        const char* name = TF_OperationName(operation);
        snprintf(part, sizeof part, "%.*s", (int)strcspn(name, "/"), name);
        int i = 0;
        while (i < n_seen && strcmp(seen[i], part) != 0) ++i;
        if (i == n_seen && n_seen < 16) memcpy(seen[n_seen++], part, sizeof part);
    }
    for (int i = 0; i < n_seen; ++i) printf("%s: %s/...\n", what, seen[i]);
}

static int n_operations(void) {
    size_t position = 0;
    int count = 0;
    while (TF_GraphNextOperation(graph, &position)) ++count;
    return count;
}

static void prefixes(void) {
    two_placeholders();
    TF_Output z = binary(graph, "Mul", "z", x, y), result;
    no_op(graph, "used");
    static const char* const PREFIXES[] = {NULL, NULL, "mine", "a/b", "used", "z", "not a name", "ends/"};
    for (int i = 0; i < N_ELEMENTS(PREFIXES); ++i) {
        const char* what = PREFIXES[i] ? PREFIXES[i] : "NULL";
        int before = n_operations();
        TF_AddGradientsWithPrefix(graph, PREFIXES[i], &z, 1, &x, 1, NULL, fresh(status), &result);
        print_status(what, status);
        if (TF_GetCode(status) == TF_OK) print_prefixes(what, before);
        if (TF_GetCode(status) != TF_OK && n_operations() != before) printf("%s: nodes were left\n", what);
    }
    int before = n_operations();
    TF_AddGradients(graph, &z, 1, &x, 1, NULL, fresh(status), &result);
    print_prefixes("without a prefix", before);
    TF_AddGradientsWithPrefix(graph, "mine", &z, 1, &x, 1, NULL, fresh(status), &result);
    print_code("mine again", status); /* the text names any node of that prefix */
}

static void empty_prefix(void) {
    two_placeholders();
    TF_Output z = binary(graph, "Mul", "z", x, y), result;
    TF_AddGradientsWithPrefix(graph, "", &z, 1, &x, 1, NULL, fresh(status), &result);
    print_status("empty", status);
    printf("%d operations\n", n_operations());
}

static void errors(void) {
    two_placeholders();
    TF_Output z = unary(graph, "Square", "z", x), result, text = placeholder(graph, "text", TF_STRING);
    add("no ys", 0, NULL, 1, &x, NULL, &result);
    add("no xs", 1, &z, 0, NULL, NULL, &result);
    TF_Output lower = unary(graph, "StringLower", "lower", text);
    add("strings", 1, &lower, 1, &text, NULL, &result);
    one("still usable", unary(graph, "Square", "still_usable", x), x);
}

static void outputs_of_another_graph(void) {
    two_placeholders();
    TF_Graph* other = TF_NewGraph();
    TF_Output far = placeholder(other, "far", TF_FLOAT), z = unary(graph, "Square", "z", x), result;
    add("x of another graph", 1, &z, 1, &far, NULL, &result);
    add("y of another graph", 1, &far, 1, &x, NULL, &result);
    TF_DeleteGraph(other);
}

static void outputs_that_are_not_there(void) {
    two_placeholders();
    TF_Output z = unary(graph, "Square", "z", x), beyond = {z.oper, 1}, nothing = {no_op(graph, "n"), 0}, result;
    add("no such output", 1, &beyond, 1, &x, NULL, &result);
    add("output of a NoOp", 1, &nothing, 1, &x, NULL, &result);
    add("no such x", 1, &z, 1, &beyond, NULL, &result);
}

static void same_shape(TF_ShapeInferenceContext* context, TF_Status* result) {
    TF_ShapeHandle* handle = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, handle, result);
    TF_ShapeInferenceContextSetOutput(context, 0, handle, result);
    TF_DeleteShapeHandle(handle);
}

static void no_gradient(void) {
    two_placeholders();
    TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("CapiNoGradient");
    TF_OpDefinitionBuilderAddInput(builder, "x: float");
    TF_OpDefinitionBuilderAddOutput(builder, "y: float");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, same_shape);
    TF_RegisterOpDefinition(builder, fresh(status));
    print_status("register", status);
    TF_Output z = unary(graph, "CapiNoGradient", "z", x), result;
    add("CapiNoGradient", 1, &z, 1, &x, NULL, &result);
    TF_Output square = unary(graph, "Square", "square", x);
    add("still usable", 1, &square, 1, &x, NULL, &result);
}

/* Those that users missed: TensorFlowSharp#397, tf#33899, tf#46114, tf#37467. */
static void once_missing(void) {
    two_placeholders();
    TF_Output low = float_constant(graph, "low", 0), high = float_constant(graph, "high", 4);
    TF_OperationDescription* description = TF_NewOperation(graph, "ClipByValue", "clip");
    TF_AddInput(description, x);
    TF_AddInput(description, low);
    TF_AddInput(description, high);
    one("ClipByValue", finish(description), x);
    const float values[] = {1, 2, 3};
    TF_Output v = constant(graph, "v", float_vector(3, values)), pair[] = {v, v}, gradient;
    description = TF_NewOperation(graph, "ConcatV2", "concat");
    TF_AddInputList(description, pair, 2);
    TF_AddInput(description, int_constant(graph, "axis", 0));
    TF_Output joined = finish(description);
    add("ConcatV2", 1, &joined, 1, &v, NULL, &gradient);
    if (gradient.oper) fetch("ConcatV2", gradient);
    description = TF_NewOperation(graph, "VarHandleOp", "variable");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrShape(description, "shape", NULL, 0);
    TF_Output variable = finish(description);
    description = TF_NewOperation(graph, "ReadVariableOp", "read");
    TF_AddInput(description, variable);
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_Output read = finish(description), square = unary(graph, "Square", "square", read);
    add("ReadVariableOp", 1, &square, 1, &variable, NULL, &gradient);
    description = TF_NewOperation(graph, "AssignVariableOp", "assign");
    TF_AddInput(description, variable);
    TF_AddInput(description, float_constant(graph, "seven", 7));
    run_and_print("assign", session, NOTHING, NULL, NOTHING, finish(description).oper);
    if (gradient.oper) fetch("ReadVariableOp", gradient);
}

static void missing_in_the_reference(void) {
    two_placeholders();
    one("Xlogy", binary(graph, "Xlogy", "xlogy", x, y), y);
    const float values[] = {1, 2, 3};
    TF_Output gradient;
    const int64_t dims[] = {1, 3};
    TF_Output logits = constant(graph, "logits", tensor_of(TF_FLOAT, 2, dims, values));
    TF_Output labels = constant(graph, "labels", int_vector(1, (const int32_t[]){2}));
    TF_Output loss = binary(graph, "SparseSoftmaxCrossEntropyWithLogits", "loss", logits, labels);
    x = logits;
    add("SparseSoftmaxCrossEntropyWithLogits", 1, &loss, 1, &logits, NULL, &gradient);
    if (TF_GetCode(status) != TF_OK) return;
    TF_Tensor* result = NULL;
    TF_SessionRun(session, NULL, NULL, NULL, 0, &gradient, &result, 1, NULL, 0, NULL, fresh(status));
    print_status("run", status);
    for (int i = 0; result && i < 3; ++i) printf("  %.4f\n", ((float*)TF_TensorData(result))[i]);
    TF_DeleteTensor(result);
}

/* A call of f(a) = a a a. */
static void through_a_call(void) {
    two_placeholders();
    TF_Graph* body = TF_NewGraph();
    TF_Output a = placeholder(body, "a", TF_FLOAT);
    TF_Output cube = binary(body, "Mul", "cube", binary(body, "Mul", "square", a, a), a);
    TF_Function* f = TF_GraphToFunction(body, "f", 0, -1, NULL, 1, &a, 1, &cube, NULL, NULL, NULL, fresh(status));
    TF_GraphCopyFunction(graph, f, NULL, fresh(status));
    print_status("copy", status);
    TF_OperationDescription* description = TF_NewOperation(graph, "PartitionedCall", "call");
    const TF_DataType types[] = {TF_FLOAT};
    TF_AddInputList(description, &x, 1);
    TF_SetAttrTypeList(description, "Tout", types, 1);
    TF_SetAttrFuncName(description, "f", "f", 1);
    one("PartitionedCall", finish(description), x);
    TF_DeleteFunction(f);
    TF_DeleteGraph(body);
}

IN_NEW_SESSION(sums_and_products)
IN_NEW_SESSION(functions_of_one)
IN_NEW_SESSION(matrices)
IN_NEW_SESSION(several)
IN_NEW_SESSION(one_input_twice)
IN_NEW_SESSION(of_itself)
IN_NEW_SESSION(second_order)
IN_NEW_SESSION(nothing_flows)
IN_NEW_SESSION(integers)
IN_NEW_SESSION(outputs_of_one_node)
IN_NEW_SESSION(prefixes)
IN_NEW_SESSION(empty_prefix)
IN_NEW_SESSION(errors)
IN_NEW_SESSION(outputs_of_another_graph)
IN_NEW_SESSION(outputs_that_are_not_there)
IN_NEW_SESSION(no_gradient)
IN_NEW_SESSION(once_missing)
IN_NEW_SESSION(missing_in_the_reference)
IN_NEW_SESSION(through_a_call)

static const Case CASES[] = {
    CASE(sums_and_products),
    CASE(functions_of_one),
    CASE(matrices),
    CASE(several),
    CASE(one_input_twice),
    CASE(of_itself),
    CASE(second_order),
    CASE(nothing_flows),
    CASE(integers),
    CASE(outputs_of_one_node),
    CASE(prefixes),
    CASE(empty_prefix),
    CASE(errors),
    CASE(outputs_of_another_graph),
    CASE(outputs_that_are_not_there),
    CASE(no_gradient),
    CASE(once_missing),
    CASE(missing_in_the_reference),
    CASE(through_a_call),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
