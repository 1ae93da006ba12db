/* What kernels that a program adds learn of the loops around them: the frame and its turn. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/kernels_experimental.h>
#include <tensorflow/c/ops.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"

/* What the kernels saw, to be printed in the order of names and turns: turns may overlap. */
typedef struct {
    char name[48];
    int64_t value, turn;
    uint64_t frame;
} Seen;

static Seen seen[256];
static int n_seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void compute_place(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    TF_Status* result = TF_NewStatus();
    TF_Tensor* input = NULL;
    TF_GetInput(context, 0, &input, result);
    Seen row = {.turn = TF_GetIterId(context), .frame = TF_GetFrameId(context)};
    if (input) row.value = *(int32_t*)TF_TensorData(input);
    TF_StringView name = TF_GetOpKernelName(context);
    snprintf(row.name, sizeof(row.name), "%.*s", (int)name.len, name.data);
    pthread_mutex_lock(&lock);
    if (n_seen < N_ELEMENTS(seen)) seen[n_seen++] = row;
    pthread_mutex_unlock(&lock);
    if (input) TF_SetOutput(context, 0, input, fresh(result));
    TF_DeleteTensor(input);
    TF_DeleteStatus(result);
}

static void compute_place_later(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
    compute_place(kernel, context);
    TF_RunAsyncOpKernelDoneCallback(done);
}

static int by_name_and_turn(const void* left, const void* right) {
    const Seen *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    if (names) return names;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    if (a->turn != b->turn) return a->turn < b->turn ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

static void print_seen(void) {
    qsort(seen, (size_t)n_seen, sizeof(seen[0]), by_name_and_turn);
    for (int i = 0; i < n_seen; ++i) {
        printf("  %s: frame %llu, turn %lld, value %lld\n", seen[i].name, (unsigned long long)seen[i].frame,
               (long long)seen[i].turn, (long long)seen[i].value);
    }
    n_seen = 0;
}

static void same_shape(TF_ShapeInferenceContext* context, TF_Status* result) {
    TF_ShapeHandle* handle = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, handle, result);
    TF_ShapeInferenceContextSetOutput(context, 0, handle, result);
    TF_DeleteShapeHandle(handle);
}

static void define(const char* name, TF_KernelBuilder* kernel) {
    TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
    TF_OpDefinitionBuilderAddInput(builder, "x: int32");
    TF_OpDefinitionBuilderAddOutput(builder, "y: int32");
    TF_OpDefinitionBuilderSetIsStateful(builder, true);
    TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, same_shape);
    TF_RegisterOpDefinition(builder, fresh(status));
    print_status(name, status);
    TF_RegisterKernelBuilder(name, kernel, fresh(status));
    print_status("  kernel", status);
}

static void define_both(void) {
    define("CapiPlace", TF_NewKernelBuilder("CapiPlace", "CPU", NULL, compute_place, NULL));
    define("CapiPlaceLater", TF_NewAsyncKernelBuilder("CapiPlaceLater", "CPU", NULL, compute_place_later, NULL));
}

/* for (i = start; i < limit; ++i), with the op in the condition and in the body. Gives the last i. */
static TF_Output counting(TF_Graph* around, const char* name, const char* op, TF_Output start, int32_t limit) {
    TF_WhileParams loop = TF_NewWhile(around, &start, 1, fresh(status));
    TF_Output tested = unary(loop.cond_graph, op, "tested", loop.cond_inputs[0]);
    loop.cond_output = binary(loop.cond_graph, "Less", "less", tested, int_constant(loop.cond_graph, "limit", limit));
    TF_Output seen_here = unary(loop.body_graph, op, "seen", loop.body_inputs[0]);
    loop.body_outputs[0] = binary(loop.body_graph, "AddV2", "next", seen_here, int_constant(loop.body_graph, "one", 1));
    loop.name = name;
    TF_Output last = NOTHING;
    TF_FinishWhile(&loop, fresh(status), &last);
    print_status(name, status);
    return last;
}

static void in_a_loop_of(const char* op) {
    define_both();
    TF_Output start = placeholder(graph, "start", TF_INT32), before = unary(graph, op, "before", start);
    TF_Output after = unary(graph, op, "after", counting(graph, "loop", op, before, 4));
    run_and_print("from 1", session, start, int_scalar(1), after, NULL);
    print_seen();
    run_and_print("from 9", session, start, int_scalar(9), after, NULL);
    print_seen();
}

static void in_a_loop(void) { in_a_loop_of("CapiPlace"); }

static void asynchronous_in_a_loop(void) { in_a_loop_of("CapiPlaceLater"); }

static void in_nested_loops_of(const char* op) {
    define_both();
    TF_Output start = placeholder(graph, "start", TF_INT32), inputs[] = {start, start}, last[2];
    TF_WhileParams outer = TF_NewWhile(graph, inputs, 2, fresh(status));
    outer.cond_output =
        binary(outer.cond_graph, "Less", "less", outer.cond_inputs[0], int_constant(outer.cond_graph, "limit", 3));
    outer.body_outputs[1] = counting(outer.body_graph, "inner", op, outer.body_inputs[0], 3);
    TF_Output beside = unary(outer.body_graph, op, "beside", outer.body_inputs[0]);
    outer.body_outputs[0] =
        binary(outer.body_graph, "AddV2", "next", beside, int_constant(outer.body_graph, "one", 1));
    outer.name = "outer";
    TF_FinishWhile(&outer, fresh(status), last);
    print_status("outer", status);
    run_and_print("run", session, start, int_scalar(0), last[1], NULL);
    print_seen();
}

static void in_nested_loops(void) { in_nested_loops_of("CapiPlace"); }

static void asynchronous_in_nested_loops(void) { in_nested_loops_of("CapiPlaceLater"); }

/* A branch that is not taken, in a loop: if (i < 2) place(i). */
static void in_a_branch_in_a_loop(void) {
    define_both();
    TF_Output start = placeholder(graph, "start", TF_INT32), last = NOTHING;
    TF_WhileParams loop = TF_NewWhile(graph, &start, 1, fresh(status));
    loop.cond_output =
        binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], int_constant(loop.cond_graph, "limit", 4));
    TF_Graph* body = loop.body_graph;
    TF_Output i = loop.body_inputs[0], small = binary(body, "Less", "small", i, int_constant(body, "two", 2));
    TF_Output branches = binary(body, "Switch", "switch", i, small);
    TF_Output is_small = unary(body, "CapiPlace", "is_small", (TF_Output){branches.oper, 1});
    TF_Output is_large = unary(body, "CapiPlace", "is_large", branches), both[] = {is_small, is_large};
    TF_OperationDescription* merge = TF_NewOperation(body, "Merge", "merge");
    TF_AddInputList(merge, both, 2);
    loop.body_outputs[0] = binary(body, "AddV2", "next", finish(merge), int_constant(body, "one", 1));
    loop.name = "loop";
    TF_FinishWhile(&loop, fresh(status), &last);
    run_and_print("run", session, start, int_scalar(0), last, NULL);
    print_seen();
}

static TF_Function* function_of(TF_Graph* body, const char* name, TF_Output input, TF_Output output) {
    TF_Function* function =
        TF_GraphToFunction(body, name, 0, -1, NULL, 1, &input, 1, &output, NULL, NULL, NULL, fresh(status));
    if (TF_GetCode(status) != TF_OK) print_status(name, status);
    return function;
}

/* A functional While, whose body has the op. */
static TF_Output functional_loop(TF_Graph* around, TF_Output start) {
    TF_Graph *cond = TF_NewGraph(), *body = TF_NewGraph();
    TF_Output c = placeholder(cond, "x", TF_INT32), b = placeholder(body, "x", TF_INT32);
    TF_Output less = binary(cond, "Less", "less", unary(cond, "CapiPlace", "tested", c), int_constant(cond, "limit", 3));
    TF_Output next =
        binary(body, "AddV2", "next", unary(body, "CapiPlace", "seen", b), int_constant(body, "one", 1));
    TF_Function *functions[] = {function_of(cond, "capi_cond", c, less), function_of(body, "capi_body", b, next)};
    for (int i = 0; i < 2; ++i) {
        TF_GraphCopyFunction(around, functions[i], NULL, fresh(status));
        TF_DeleteFunction(functions[i]);
    }
    TF_DeleteGraph(cond);
    TF_DeleteGraph(body);
    TF_OperationDescription* description = TF_NewOperation(around, "While", "functional");
    TF_AddInputList(description, &start, 1);
    TF_SetAttrFuncName(description, "cond", "capi_cond", 9);
    TF_SetAttrFuncName(description, "body", "capi_body", 9);
    return finish(description);
}

static void in_a_functional_loop(void) {
    define_both();
    TF_Output start = placeholder(graph, "start", TF_INT32), last = functional_loop(graph, start);
    run_and_print("run", session, start, int_scalar(0), last, NULL);
    print_seen();
}

/* A function called in a loop. */
static void in_a_function_in_a_loop(void) {
    define_both();
    TF_Graph* inner = TF_NewGraph();
    TF_Output x = placeholder(inner, "x", TF_INT32);
    TF_Function* function = function_of(inner, "capi_called", x, unary(inner, "CapiPlace", "within", x));
    TF_DeleteGraph(inner);
    TF_Output start = placeholder(graph, "start", TF_INT32), last = NOTHING;
    TF_GraphCopyFunction(graph, function, NULL, fresh(status));
    TF_WhileParams loop = TF_NewWhile(graph, &start, 1, fresh(status));
    TF_GraphCopyFunction(loop.body_graph, function, NULL, fresh(status));
    TF_DeleteFunction(function);
    loop.cond_output =
        binary(loop.cond_graph, "Less", "less", loop.cond_inputs[0], int_constant(loop.cond_graph, "limit", 3));
    TF_OperationDescription* call = TF_NewOperation(loop.body_graph, "StatefulPartitionedCall", "call");
    TF_AddInputList(call, loop.body_inputs, 1);
    TF_SetAttrTypeList(call, "Tout", (const TF_DataType[]){TF_INT32}, 1);
    TF_SetAttrFuncName(call, "f", "capi_called", 11);
    loop.body_outputs[0] =
        binary(loop.body_graph, "AddV2", "next", finish(call), int_constant(loop.body_graph, "one", 1));
    loop.name = "loop";
    TF_FinishWhile(&loop, fresh(status), &last);
    print_status("loop", status);
    run_and_print("run", session, start, int_scalar(0), last, NULL);
    print_seen();
}

IN_NEW_SESSION(in_a_loop)
IN_NEW_SESSION(asynchronous_in_a_loop)
IN_NEW_SESSION(in_nested_loops)
IN_NEW_SESSION(asynchronous_in_nested_loops)
IN_NEW_SESSION(in_a_branch_in_a_loop)
IN_NEW_SESSION(in_a_functional_loop)
IN_NEW_SESSION(in_a_function_in_a_loop)

static const Case CASES[] = {
    CASE(in_a_loop),
    CASE(asynchronous_in_a_loop),
    CASE(in_nested_loops),
    CASE(asynchronous_in_nested_loops),
    CASE(in_a_branch_in_a_loop),
    CASE(in_a_functional_loop),
    CASE(in_a_function_in_a_loop),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
