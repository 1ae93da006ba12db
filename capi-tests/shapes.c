/* Static shapes: set, get, merged, inferred through operations, with constants followed. */
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"

static TF_Graph* graph;
static TF_Status* status;

static void print_shape(const char* what, TF_Output output) {
    int64_t dims[8] = {0};
    int rank = TF_GraphGetTensorNumDims(graph, output, fresh(status));
    if (TF_GetCode(status) != TF_OK) {
        print_status(what, status);
        return;
    }
    printf("%s: ", what);
    if (rank < 0) {
        printf("unknown rank\n");
        return;
    }
    TF_GraphGetTensorShape(graph, output, dims, rank, fresh(status));
    printf("[");
    for (int i = 0; i < rank; ++i) printf("%s%lld", i ? "," : "", (long long)dims[i]);
    printf("]\n");
    if (TF_GetCode(status) != TF_OK) print_status(what, status);
}

static void set(const char* what, TF_Output output, int rank, const int64_t* dims) {
    TF_GraphSetTensorShape(graph, output, dims, rank, fresh(status));
    print_status(what, status);
    print_shape(what, output);
}

static void merging(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    print_shape("fresh", x);
    set("nothing known", x, -1, NULL);
    set("rank", x, 2, (const int64_t[]){-1, -1});
    set("one", x, 2, (const int64_t[]){3, -1});
    set("less does not forget", x, 2, (const int64_t[]){-1, -1});
    set("other", x, 2, (const int64_t[]){-1, 4});
    set("contradiction", x, 2, (const int64_t[]){5, 4});
    set("other rank", x, 3, (const int64_t[]){3, 4, 1});
    set("scalar", placeholder(graph, "s", TF_FLOAT), 0, NULL);
}

static void below_minus_one(void) {
    set("below -1", placeholder(graph, "n", TF_FLOAT), 1, (const int64_t[]){-2});
}

static void reading(void) {
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 3, (const int64_t[]){2, -1, 4});
    int64_t dims[4] = {9, 9, 9, 9};
    TF_GraphGetTensorShape(graph, x, dims, 2, fresh(status));
    print_status("room for 2", status);
    TF_GraphGetTensorShape(graph, x, dims, 4, fresh(status));
    print_status("asked for 4", status);
    TF_GraphGetTensorShape(graph, placeholder(graph, "u", TF_FLOAT), dims, 0, fresh(status));
    print_status("unknown rank", status);
}

static void output_out_of_range(void) {
    int64_t dims[4] = {9, 9, 9, 9};
    TF_Output beyond = {placeholder(graph, "x", TF_FLOAT).oper, 1};
    printf("%d\n", TF_GraphGetTensorNumDims(graph, beyond, fresh(status)));
    print_status("output 1", status);
    TF_GraphGetTensorShape(graph, beyond, dims, 3, fresh(status));
    print_status("output 1", status);
    TF_GraphSetTensorShape(graph, beyond, dims, 1, fresh(status));
    print_status("output 1", status);
}

static void other_graph(void) {
    TF_Graph* other = TF_NewGraph();
    TF_Output foreign = placeholder(other, "far", TF_FLOAT);
    placeholder(graph, "x", TF_FLOAT);
    printf("%d\n", TF_GraphGetTensorNumDims(graph, foreign, fresh(status)));
    print_status("rank", status);
    TF_GraphGetTensorShape(graph, foreign, NULL, 0, fresh(status));
    print_status("shape", status);
    TF_GraphSetTensorShape(graph, foreign, NULL, 0, fresh(status));
    print_status("set", status);
    TF_DeleteGraph(other);
}

static TF_Output ints(const char* name, int n, const int32_t* values) {
    return constant(graph, name, int_vector(n, values));
}

static void elementwise(void) {
    TF_Output a = shaped_placeholder(graph, "a", TF_FLOAT, 2, (const int64_t[]){-1, 3});
    TF_Output b = shaped_placeholder(graph, "b", TF_FLOAT, 1, (const int64_t[]){3});
    TF_Output c = shaped_placeholder(graph, "c", TF_FLOAT, 3, (const int64_t[]){5, 1, 1});
    TF_Output u = placeholder(graph, "u", TF_FLOAT);
    print_shape("a+b", binary(graph, "AddV2", "ab", a, b));
    print_shape("a+c", binary(graph, "AddV2", "ac", a, c));
    print_shape("a+u", binary(graph, "AddV2", "au", a, u));
    print_shape("neg u", unary(graph, "Neg", "nu", u));
    print_shape("relu a", unary(graph, "Relu", "ra", a));
    print_shape("shape of a", unary(graph, "Shape", "sa", a));
    print_shape("shape of u", unary(graph, "Shape", "su", u));
    print_shape("rank of u", unary(graph, "Rank", "ru", u));
    print_shape("softmax a", unary(graph, "Softmax", "so", a));
}

static void constants_followed(void) {
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 2, (const int64_t[]){-1, 6});
    TF_Output shape = unary(graph, "Shape", "shape", x);
    print_shape("reshape", binary(graph, "Reshape", "r1", x, ints("s1", 3, (const int32_t[]){-1, 2, 3})));
    TF_Output known = shaped_placeholder(graph, "k", TF_FLOAT, 2, (const int64_t[]){4, 6});
    print_shape("reshape with -1", binary(graph, "Reshape", "r2", known, ints("s2", 2, (const int32_t[]){-1, 3})));
    print_shape("reshape to own shape", binary(graph, "Reshape", "r3", x, shape));
    print_shape("fill",
                binary(graph, "Fill", "f", ints("s3", 2, (const int32_t[]){7, 8}), float_constant(graph, "v", 0)));
    print_shape("fill like x", binary(graph, "Fill", "f2", shape, float_constant(graph, "v2", 0)));
    TF_Output doubled =
        binary(graph, "Mul", "m", ints("s4", 2, (const int32_t[]){2, 3}), int_constant(graph, "two", 2));
    print_shape("fill of computed", binary(graph, "Fill", "f3", doubled, float_constant(graph, "v3", 0)));
    TF_OperationDescription* description = TF_NewOperation(graph, "Range", "range");
    TF_AddInput(description, int_constant(graph, "start", 2));
    TF_AddInput(description, int_constant(graph, "limit", 11));
    TF_AddInput(description, int_constant(graph, "delta", 3));
    print_shape("range", finish(description));
    description = TF_NewOperation(graph, "StridedSlice", "slice");
    TF_AddInput(description, shape);
    TF_AddInput(description, ints("begin", 1, (const int32_t[]){0}));
    TF_AddInput(description, ints("end", 1, (const int32_t[]){1}));
    TF_AddInput(description, ints("step", 1, (const int32_t[]){1}));
    TF_SetAttrInt(description, "shrink_axis_mask", 1);
    TF_Output batch = finish(description);
    print_shape("slice", batch);
    description = TF_NewOperation(graph, "Pack", "pack");
    const TF_Output parts[] = {batch, int_constant(graph, "three", 3), int_constant(graph, "rest", 2)};
    TF_AddInputList(description, parts, 3);
    TF_Output packed = finish(description);
    print_shape("reshape to packed", binary(graph, "Reshape", "r4", x, packed));
}

static void structure(void) {
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 4, (const int64_t[]){-1, 28, 28, 3});
    TF_Output filter = shaped_placeholder(graph, "w", TF_FLOAT, 4, (const int64_t[]){3, 3, 3, 16});
    for (int i = 0; i < 2; ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, "Conv2D", i ? "valid" : "same");
        TF_AddInput(description, x);
        TF_AddInput(description, filter);
        TF_SetAttrIntList(description, "strides", (const int64_t[]){1, 2, 2, 1}, 4);
        TF_SetAttrString(description, "padding", i ? "VALID" : "SAME", i ? 5 : 4);
        print_shape("conv", finish(description));
    }
    print_shape("transpose", binary(graph, "Transpose", "t", x, ints("perm", 4, (const int32_t[]){0, 3, 1, 2})));
    print_shape("mean", binary(graph, "Mean", "m", x, ints("axes", 2, (const int32_t[]){1, 2})));
    print_shape("expand", binary(graph, "ExpandDims", "e", x, int_constant(graph, "axis", -1)));
    print_shape("argmax", binary(graph, "ArgMax", "am", x, int_constant(graph, "axis2", 3)));
    TF_OperationDescription* description = TF_NewOperation(graph, "ConcatV2", "c");
    const TF_Output parts[] = {x, x};
    TF_AddInputList(description, parts, 2);
    TF_AddInput(description, int_constant(graph, "axis3", 3));
    print_shape("concat", finish(description));
    description = TF_NewOperation(graph, "Split", "s");
    TF_AddInput(description, int_constant(graph, "axis4", 1));
    TF_AddInput(description, x);
    TF_SetAttrInt(description, "num_split", 4);
    TF_Output split = finish(description);
    split.index = 3;
    print_shape("split", split);
    description = TF_NewOperation(graph, "Squeeze", "q");
    TF_AddInput(description, shaped_placeholder(graph, "ones", TF_FLOAT, 3, (const int64_t[]){1, -1, 1}));
    print_shape("squeeze", finish(description));
    print_shape("pad", binary(graph, "Pad", "p", shaped_placeholder(graph, "v", TF_FLOAT, 1, (const int64_t[]){5}),
                              constant(graph, "pads",
                                       tensor_of(TF_INT32, 2, (const int64_t[]){1, 2}, (const int32_t[]){2, 3}))));
    print_shape("unique",
                unary(graph, "Unique", "u", shaped_placeholder(graph, "d", TF_INT32, 1, (const int64_t[]){9})));
    print_shape("where",
                unary(graph, "Where", "wh", shaped_placeholder(graph, "b", TF_BOOL, 2, (const int64_t[]){2, 2})));
}

static void later_knowledge(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_Output y = unary(graph, "Neg", "y", x);
    set("x", x, 1, (const int64_t[]){4});
    print_shape("y, built before", y);
    print_shape("z, built after", unary(graph, "Neg", "z", x));
}

static void in_new_graph(void (*body)(void)) {
    graph = TF_NewGraph();
    status = TF_NewStatus();
    body();
    TF_DeleteStatus(status);
    TF_DeleteGraph(graph);
}

#define IN_NEW_GRAPH(body) \
    static void run_##body(void) { in_new_graph(body); }

IN_NEW_GRAPH(merging)
IN_NEW_GRAPH(below_minus_one)
IN_NEW_GRAPH(reading)
IN_NEW_GRAPH(output_out_of_range)
IN_NEW_GRAPH(other_graph)
IN_NEW_GRAPH(elementwise)
IN_NEW_GRAPH(constants_followed)
IN_NEW_GRAPH(structure)
IN_NEW_GRAPH(later_knowledge)

static const Case CASES[] = {
    {"merging", run_merging},
    {"below_minus_one", run_below_minus_one},
    {"reading", run_reading},
    {"output_out_of_range", run_output_out_of_range},
    {"other_graph", run_other_graph},
    {"elementwise", run_elementwise},
    {"constants_followed", run_constants_followed},
    {"structure", run_structure},
    {"later_knowledge", run_later_knowledge},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
