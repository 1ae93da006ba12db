/* Texts of errors of a step: shapes that only the step knows, and nodes that lie in functions. */
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"

enum { MAX_INPUTS = 3 };

static TF_Tensor* zeros(TF_DataType type, int rank, const int64_t* dims) {
    static const double nothing[64];
    return tensor_of(type, rank, dims, nothing);
}

static TF_Tensor* floats(int rank, const int64_t* dims) { return zeros(TF_FLOAT, rank, dims); }
#define DIMS(...) (const int64_t[]){__VA_ARGS__}

/* Runs a node whose inputs are placeholders of unknown shapes, fed with these. */
static void try_op(const char* op, const char* name, int count, TF_Tensor* const* feeds, bool as_list,
                   const char* strings[][2]) {
    TF_Output inputs[MAX_INPUTS];
    for (int i = 0; i < count; ++i) {
        char input_name[64];
        snprintf(input_name, sizeof input_name, "%s_in_%d", name, i);
        inputs[i] = placeholder(graph, input_name, TF_TensorType(feeds[i]));
    }
    TF_OperationDescription* description = TF_NewOperation(graph, op, name);
    if (as_list) TF_AddInputList(description, inputs, count);
    for (int i = 0; i < count && !as_list; ++i) TF_AddInput(description, inputs[i]);
    for (int i = 0; strings && strings[i][0]; ++i) {
        TF_SetAttrString(description, strings[i][0], strings[i][1], strlen(strings[i][1]));
    }
    if (strcmp(op, "Conv2D") == 0 || strcmp(op, "DepthwiseConv2dNative") == 0) {
        TF_SetAttrIntList(description, "strides", DIMS(1, 1, 1, 1), 4);
    }
    TF_Output output = finish(description);
    run(name, count, inputs, feeds, 1, &output, 0, NULL);
    for (int i = 0; i < count; ++i) TF_DeleteTensor(feeds[i]);
}

#define TRY(op, name, ...)                                                      \
    do {                                                                        \
        TF_Tensor* feeds[] = {__VA_ARGS__};                                     \
        try_op(op, name, N_ELEMENTS(feeds), feeds, false, NULL);                \
    } while (0)

static void matrices(void) {
    TRY("MatMul", "matmul", floats(2, DIMS(2, 3)), floats(2, DIMS(2, 3)));
    TRY("MatMul", "matmul_of_scalars", floats(0, NULL), floats(0, NULL));
    TRY("MatMul", "matmul_by_a_vector", floats(2, DIMS(2, 3)), floats(1, DIMS(3)));
    TRY("BatchMatMulV2", "batch_matmul", floats(2, DIMS(2, 3)), floats(2, DIMS(2, 3)));
    TRY("BatchMatMulV2", "batches", floats(3, DIMS(2, 3, 4)), floats(3, DIMS(5, 4, 3)));
    TRY("BatchMatMulV2", "batch_matmul_of_vectors", floats(1, DIMS(3)), floats(2, DIMS(3, 3)));
    TRY("BiasAdd", "bias", floats(2, DIMS(2, 3)), floats(1, DIMS(2)));
    TRY("BiasAdd", "bias_matrix", floats(2, DIMS(2, 3)), floats(2, DIMS(2, 2)));
}

static void broadcasts(void) {
    static const char* const OPS[] = {"AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Pow", "Less", "Equal", "FloorDiv",
                                      "SquaredDifference", "Atan2"};
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) TRY(OPS[i], OPS[i], floats(1, DIMS(3)), floats(1, DIMS(2)));
    TRY("AddV2", "add_matrices", floats(2, DIMS(2, 3)), floats(2, DIMS(3, 2)));
}

static void lists(void) {
    TF_Tensor* unequal[] = {floats(1, DIMS(3)), floats(1, DIMS(2))};
    try_op("AddN", "add_n", 2, unequal, true, NULL);
    TF_Tensor* ranks[] = {floats(2, DIMS(2, 3)), floats(1, DIMS(2))};
    try_op("Pack", "pack", 2, ranks, true, NULL);
    const int64_t* const shapes[][2] = {{DIMS(2, 3), DIMS(2, 4)}, {DIMS(2, 3), DIMS(2)}};
    const int second_ranks[] = {2, 1};
    for (int i = 0; i < 2; ++i) {
        char name[32];
        snprintf(name, sizeof name, "concat_%d", i);
        TF_Output a = placeholder(graph, i ? "a1" : "a0", TF_FLOAT);
        TF_Output b = placeholder(graph, i ? "b1" : "b0", TF_FLOAT);
        const TF_Output pair[] = {a, b};
        TF_OperationDescription* description = TF_NewOperation(graph, "ConcatV2", name);
        TF_AddInputList(description, pair, 2);
        TF_AddInput(description, int_constant(graph, i ? "axis1" : "axis0", 0));
        TF_Output joined = finish(description);
        TF_Tensor* feeds[] = {floats(2, shapes[i][0]), floats(second_ranks[i], shapes[i][1])};
        run(name, 2, pair, feeds, 1, &joined, 0, NULL);
        TF_DeleteTensor(feeds[0]);
        TF_DeleteTensor(feeds[1]);
    }
}

static void shapes_from_values(void) {
    TRY("Reshape", "reshape", floats(1, DIMS(6)), int_vector(2, (const int32_t[]){7, 7}));
    TRY("Reshape", "reshape_open", floats(1, DIMS(6)), int_vector(2, (const int32_t[]){-1, 4}));
    TRY("Reshape", "reshape_zero", floats(1, DIMS(6)), int_vector(2, (const int32_t[]){-1, 0}));
    TRY("Reshape", "reshape_two_open", floats(1, DIMS(6)), int_vector(2, (const int32_t[]){-1, -1}));
    TRY("Reshape", "reshape_below", floats(1, DIMS(6)), int_vector(2, (const int32_t[]){-2, 3}));
    TRY("Reshape", "reshape_matrix", floats(1, DIMS(6)), zeros(TF_INT32, 2, DIMS(1, 2)));
}

static void convolutions(void) {
    const char* valid[][2] = {{"padding", "VALID"}, {NULL, NULL}};
    TF_Tensor* depths[] = {floats(4, DIMS(1, 4, 4, 3)), floats(4, DIMS(2, 2, 2, 3))};
    try_op("Conv2D", "depths", 2, depths, false, valid);
    TF_Tensor* per_channel[] = {floats(4, DIMS(1, 4, 4, 3)), floats(4, DIMS(2, 2, 2, 3))};
    try_op("DepthwiseConv2dNative", "per_channel", 2, per_channel, false, valid);
}

/* A function name(a) = Gather(a, 7), which fails for every vector that is short; `inner` calls that instead. */
static TF_Function* failing(const char* name, const char* inner) {
    TF_Graph* body = TF_NewGraph();
    TF_Output a = placeholder(body, "a", TF_FLOAT), result;
    if (inner) {
        TF_Function* function = failing(inner, NULL);
        TF_GraphCopyFunction(body, function, NULL, fresh(status));
        TF_DeleteFunction(function);
        result = unary(body, inner, "inner_call", a);
    } else {
        TF_OperationDescription* description = TF_NewOperation(body, "GatherV2", "gather");
        TF_AddInput(description, a);
        TF_AddInput(description, int_constant(body, "index", 7));
        TF_AddInput(description, int_constant(body, "axis", 0));
        result = finish(description);
    }
    TF_Function* function =
        TF_GraphToFunction(body, name, 0, -1, NULL, 1, &a, 1, &result, NULL, NULL, NULL, fresh(status));
    if (TF_GetCode(status) != TF_OK) print_status(name, status);
    TF_DeleteGraph(body);
    return function;
}

static void add_failing(const char* name, const char* inner) {
    TF_Function* function = failing(name, inner);
    if (inner) {
        TF_Function* called = failing(inner, NULL);
        TF_GraphCopyFunction(graph, called, NULL, fresh(status));
        TF_DeleteFunction(called);
    }
    TF_GraphCopyFunction(graph, function, NULL, fresh(status));
    if (TF_GetCode(status) != TF_OK) print_status("copy", status);
    TF_DeleteFunction(function);
}

static TF_Output three(void) { return constant(graph, "three", float_vector(3, (const float[]){1, 2, 3})); }

/* Fetches through so many nodes that the reference optimizes the graph: from 4 on it puts bodies in the place of
 * calls. */
static void fetch_far(const char* what, TF_Output output) {
    for (int i = 0; i < 6; ++i) {
        char name[64];
        snprintf(name, sizeof name, "%s_%d", TF_OperationName(output.oper), i);
        output = unary(graph, i % 2 ? "Square" : "Sin", name, output);
    }
    fetch(what, output);
}

static void in_a_function_called_by_name(void) {
    add_failing("f", NULL);
    fetch_far("call", unary(graph, "f", "call", three()));
}

static void in_a_partitioned_call(void) {
    add_failing("f", NULL);
    TF_Output argument = three();
    static const char* const OPS[] = {"PartitionedCall", "StatefulPartitionedCall"};
    const TF_DataType types[] = {TF_FLOAT};
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, OPS[i], i ? "stateful" : "stateless");
        TF_AddInputList(description, &argument, 1);
        TF_SetAttrTypeList(description, "Tout", types, 1);
        TF_SetAttrFuncName(description, "f", "f", 1);
        fetch_far(OPS[i], finish(description));
    }
}

static void in_a_nested_call(void) {
    add_failing("outer", "f");
    fetch_far("call", unary(graph, "outer", "call", three()));
}

static void in_a_branch(void) {
    add_failing("f", NULL);
    TF_Output argument = three();
    static const char* const OPS[] = {"StatelessIf", "If"};
    const TF_DataType types[] = {TF_FLOAT};
    TF_Output condition = placeholder(graph, "condition", TF_BOOL);
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, OPS[i], OPS[i]);
        TF_AddInput(description, condition);
        TF_AddInputList(description, &argument, 1);
        TF_SetAttrTypeList(description, "Tout", types, 1);
        TF_SetAttrFuncName(description, "then_branch", "f", 1);
        TF_SetAttrFuncName(description, "else_branch", "f", 1);
        TF_Output result = finish(description);
        run_and_print(OPS[i], session, condition, tensor_of(TF_BOOL, 0, NULL, "\1"), result, NULL);
    }
}

static void in_a_loop(void) {
    add_failing("f", NULL);
    TF_Graph* test = TF_NewGraph();
    TF_Output a = placeholder(test, "a", TF_FLOAT), yes = constant(test, "yes", tensor_of(TF_BOOL, 0, NULL, "\1"));
    TF_Function* condition =
        TF_GraphToFunction(test, "always", 0, -1, NULL, 1, &a, 1, &yes, NULL, NULL, NULL, fresh(status));
    TF_GraphCopyFunction(graph, condition, NULL, fresh(status));
    TF_Output argument = placeholder(graph, "argument", TF_FLOAT);
    static const char* const OPS[] = {"StatelessWhile", "While"};
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, OPS[i], OPS[i]);
        TF_AddInputList(description, &argument, 1);
        TF_SetAttrFuncName(description, "cond", "always", 6);
        TF_SetAttrFuncName(description, "body", "f", 1);
        TF_Output result = finish(description);
        run_and_print(OPS[i], session, argument, float_vector(3, (const float[]){1, 2, 3}), result, NULL);
    }
    TF_DeleteFunction(condition);
    TF_DeleteGraph(test);
}

IN_NEW_SESSION(matrices)
IN_NEW_SESSION(broadcasts)
IN_NEW_SESSION(lists)
IN_NEW_SESSION(shapes_from_values)
IN_NEW_SESSION(convolutions)
IN_NEW_SESSION(in_a_function_called_by_name)
IN_NEW_SESSION(in_a_partitioned_call)
IN_NEW_SESSION(in_a_nested_call)
IN_NEW_SESSION(in_a_branch)
IN_NEW_SESSION(in_a_loop)

static const Case CASES[] = {
    CASE(matrices),
    CASE(broadcasts),
    CASE(lists),
    CASE(shapes_from_values),
    CASE(convolutions),
    CASE(in_a_function_called_by_name),
    CASE(in_a_partitioned_call),
    CASE(in_a_nested_call),
    CASE(in_a_branch),
    CASE(in_a_loop),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
