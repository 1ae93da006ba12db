/* Loops made by TF_NewWhile and TF_FinishWhile: what they compute, what the graph then holds, and the errors. */
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/print_graph.h"

enum { MAX_VARIABLES = 4 };

static TF_Output results[MAX_VARIABLES];

static TF_WhileParams begin(const char* what, TF_Output* inputs, int count) {
    TF_WhileParams params = TF_NewWhile(graph, inputs, count, fresh(status));
    print_status(what, status);
    for (int i = 0; i < count && i < MAX_VARIABLES; ++i) results[i] = (TF_Output){NULL, 77};
    return params;
}

static void end(const char* what, TF_WhileParams* params) {
    int count = params->ninputs;
    TF_FinishWhile(params, fresh(status), results);
    print_status(what, status);
    for (int i = 0; i < count && TF_GetCode(status) == TF_OK; ++i) {
        if (results[i].oper) printf("  %d: %s:%d\n", i, TF_OperationName(results[i].oper), results[i].index);
    }
}

/* while (first < limit) */
static void while_less_than(TF_WhileParams* params, int32_t limit) {
    params->cond_output = binary(params->cond_graph, "Less", "less", params->cond_inputs[0],
                                 int_constant(params->cond_graph, "limit", limit));
}

/* while (i < 10) i = i + 1 */
static void counting(void) {
    TF_Output start = placeholder(graph, "start", TF_INT32);
    TF_WhileParams params = begin("new", &start, 1);
    printf("%d %s %s\n", params.ninputs, TF_OperationName(params.cond_inputs[0].oper),
           TF_OperationName(params.body_inputs[0].oper));
    while_less_than(&params, 10);
    params.body_outputs[0] =
        binary(params.body_graph, "AddV2", "next", params.body_inputs[0], int_constant(params.body_graph, "one", 1));
    params.name = "loop";
    end("finish", &params);
    run_and_print("from 3", session, start, int_scalar(3), results[0], NULL);
    run_and_print("from 12", session, start, int_scalar(12), results[0], NULL);
    print_graph(graph);
}

/* while (i < 5) { i = i + 1; product = product * factor; factor = factor } */
static void three_variables(void) {
    TF_Output inputs[] = {int_constant(graph, "zero", 0), float_constant(graph, "one", 1),
                          placeholder(graph, "factor", TF_FLOAT)};
    TF_WhileParams params = begin("new", inputs, 3);
    while_less_than(&params, 5);
    params.body_outputs[0] =
        binary(params.body_graph, "AddV2", "next", params.body_inputs[0], int_constant(params.body_graph, "one", 1));
    params.body_outputs[1] = binary(params.body_graph, "Mul", "product", params.body_inputs[1], params.body_inputs[2]);
    params.body_outputs[2] = params.body_inputs[2];
    params.name = "power";
    end("finish", &params);
    TF_Tensor* feed = float_scalar(2);
    run("all", 1, &inputs[2], &feed, 3, results, 0, NULL);
    TF_DeleteTensor(feed);
    print_graph(graph);
}

/* for (i = 0; i < 3; ++i) for (j = i; j < 4; ++j) sum = sum + 1 */
static void nested(void) {
    TF_Output inputs[] = {int_constant(graph, "zero", 0), int_constant(graph, "nothing", 0)};
    TF_WhileParams outer = begin("new", inputs, 2);
    while_less_than(&outer, 3);
    TF_Output inner_inputs[] = {outer.body_inputs[0], outer.body_inputs[1]}, inner_results[2];
    TF_WhileParams inner = TF_NewWhile(outer.body_graph, inner_inputs, 2, fresh(status));
    print_status("inner", status);
    while_less_than(&inner, 4);
    TF_Output one = int_constant(inner.body_graph, "one", 1);
    inner.body_outputs[0] = binary(inner.body_graph, "AddV2", "next", inner.body_inputs[0], one);
    inner.body_outputs[1] = binary(inner.body_graph, "AddV2", "more", inner.body_inputs[1], one);
    inner.name = "inner";
    TF_FinishWhile(&inner, fresh(status), inner_results);
    print_status("finish inner", status);
    outer.body_outputs[0] =
        binary(outer.body_graph, "AddV2", "next", outer.body_inputs[0], int_constant(outer.body_graph, "one", 1));
    outer.body_outputs[1] = inner_results[1];
    outer.name = "outer";
    end("finish", &outer);
    run("both", 0, NULL, NULL, 2, results, 0, NULL);
    print_graph(graph);
}

static void one_name_twice(void) {
    TF_Output start = int_constant(graph, "start", 0);
    for (int i = 0; i < 2; ++i) {
        TF_WhileParams params = begin("new", &start, 1);
        while_less_than(&params, 10 + i);
        params.body_outputs[0] = binary(params.body_graph, "AddV2", "next", params.body_inputs[0],
                                        int_constant(params.body_graph, "one", 1));
        params.name = "loop";
        end("finish", &params);
        if (TF_GetCode(status) == TF_OK) fetch("run", results[0]);
    }
}

static void aborted(void) {
    TF_Output start = int_constant(graph, "start", 0);
    TF_WhileParams params = begin("new", &start, 1);
    while_less_than(&params, 10);
    TF_AbortWhile(&params);
    print_graph(graph);
    params = begin("new", &start, 1);
    TF_AbortWhile(&params);
    no_op(graph, "still_usable");
}

static void no_inputs(void) {
    TF_Output start = int_constant(graph, "start", 0);
    printf("%d\n", begin("none", &start, 0).ninputs);
    no_op(graph, "still_usable");
}

static void wrong_inputs(void) {
    TF_Graph* other = TF_NewGraph();
    TF_Output start = int_constant(graph, "start", 0), far = int_constant(other, "far", 0), beyond = {start.oper, 1};
    TF_WhileParams params = begin("of another graph", &far, 1);
    if (params.ninputs > 0) TF_AbortWhile(&params);
    params = begin("beyond", &beyond, 1);
    printf("%d\n", params.ninputs);
    printf("%d\n", begin("negative", &start, -1).ninputs);
    TF_DeleteGraph(other);
}

/* What is left unset by the bits of `parts`: 1 the condition, 2 the body, 4 the name. */
static void finish_without(const char* what, int parts) {
    TF_Output start = int_constant(graph, what, 0);
    TF_WhileParams params = begin("new", &start, 1);
    if (!(parts & 1)) while_less_than(&params, 10);
    if (!(parts & 2)) params.body_outputs[0] = params.body_inputs[0];
    params.name = parts & 4 ? NULL : what;
    end(what, &params);
    print_graph(graph);
}

static void without_condition(void) { finish_without("no_condition", 1); }
static void without_body(void) { finish_without("no_body", 2); }
static void without_name(void) { finish_without("no_name", 4); }

static void wrong_condition(void) {
    TF_Output start = int_constant(graph, "start", 0);
    TF_WhileParams params = begin("new", &start, 1);
    params.cond_output = params.cond_inputs[0];
    params.body_outputs[0] = params.body_inputs[0];
    params.name = "int_condition";
    end("an int as condition", &params);
    params = begin("new", &start, 1);
    const int64_t two = 2;
    params.cond_output = constant(params.cond_graph, "two", tensor_of(TF_BOOL, 1, &two, "\1"));
    params.body_outputs[0] = params.body_inputs[0];
    params.name = "vector_condition";
    end("a vector as condition", &params);
    params = begin("new", &start, 1);
    params.cond_output = binary(params.body_graph, "Less", "less", params.body_inputs[0], params.body_inputs[0]);
    params.body_outputs[0] = params.body_inputs[0];
    params.name = "from_body";
    end("a condition in the body", &params);
    no_op(graph, "still_usable");
}

static void body_of_another_type(void) {
    TF_Output start = int_constant(graph, "start", 0);
    TF_WhileParams params = begin("new", &start, 1);
    while_less_than(&params, 10);
    params.body_outputs[0] = float_constant(params.body_graph, "float", 1);
    params.name = "float_body";
    end("a float for an int", &params);
}

static void result_of_the_outer_graph(void) {
    TF_Output start = int_constant(graph, "start", 0);
    TF_WhileParams params = begin("new", &start, 1);
    while_less_than(&params, 10);
    params.body_outputs[0] = start;
    params.name = "outer_result";
    end("an operation of the outer graph as result", &params);
}

static void result_that_is_not_there(void) {
    TF_Output start = int_constant(graph, "start", 0);
    TF_WhileParams params = begin("new", &start, 1);
    while_less_than(&params, 10);
    params.body_outputs[0] = (TF_Output){params.body_inputs[0].oper, 3};
    params.name = "beyond";
    end("no such output", &params);
}

/* tf#28195: the body reads an operation of the outer graph. */
static void body_reads_the_outer_graph(void) {
    TF_Output start = int_constant(graph, "start", 0), step = int_constant(graph, "step", 2);
    TF_WhileParams params = begin("new", &start, 1);
    while_less_than(&params, 10);
    TF_OperationDescription* description = TF_NewOperation(params.body_graph, "AddV2", "next");
    TF_AddInput(description, params.body_inputs[0]);
    TF_AddInput(description, step);
    TF_Output next = finish_and_print(description, "next");
    params.body_outputs[0] = next.oper ? next : params.body_inputs[0];
    params.name = "loop";
    if (next.oper) {
        end("finish", &params);
    } else {
        TF_AbortWhile(&params);
    }
    no_op(graph, "still_usable");
}

/* The gradient of x 2 2 2 2. */
static void gradient_through_a_loop(void) {
    TF_Output inputs[] = {int_constant(graph, "zero", 0), placeholder(graph, "x", TF_FLOAT)};
    TF_WhileParams params = begin("new", inputs, 2);
    while_less_than(&params, 4);
    params.body_outputs[0] =
        binary(params.body_graph, "AddV2", "next", params.body_inputs[0], int_constant(params.body_graph, "one", 1));
    params.body_outputs[1] =
        binary(params.body_graph, "Mul", "doubled", params.body_inputs[1], float_constant(params.body_graph, "two", 2));
    params.name = "loop";
    end("finish", &params);
    run_and_print("x", session, inputs[1], float_scalar(3), results[1], NULL);
    TF_Output gradient = NOTHING;
    TF_AddGradients(graph, &results[1], 1, &inputs[1], 1, NULL, fresh(status), &gradient);
    print_status("gradient", status);
    if (gradient.oper) run_and_print("by x", session, inputs[1], float_scalar(3), gradient, NULL);
}

/* The gradients of both variables of while (a < 100) { a = a b; b = b }. */
static void gradients_of_all_variables(void) {
    TF_Output inputs[] = {placeholder(graph, "a", TF_FLOAT), placeholder(graph, "b", TF_FLOAT)};
    TF_WhileParams params = begin("new", inputs, 2);
    params.cond_output = binary(params.cond_graph, "Less", "less", params.cond_inputs[0],
                                float_constant(params.cond_graph, "limit", 100));
    params.body_outputs[0] = binary(params.body_graph, "Mul", "product", params.body_inputs[0], params.body_inputs[1]);
    params.body_outputs[1] = params.body_inputs[1];
    params.name = "loop";
    end("finish", &params);
    TF_Output gradients[2] = {NOTHING, NOTHING};
    TF_AddGradients(graph, results, 2, inputs, 2, NULL, fresh(status), gradients);
    print_status("gradients", status);
    if (TF_GetCode(status) != TF_OK) return;
    TF_Tensor* feeds[] = {float_scalar(3), float_scalar(5)};
    run("gradients", 2, inputs, feeds, 2, gradients, 0, NULL);
    TF_DeleteTensor(feeds[0]);
    TF_DeleteTensor(feeds[1]);
}

static void controls_and_constants(void) {
    TF_Output start = int_constant(graph, "start", 0);
    TF_WhileParams params = begin("new", &start, 1);
    while_less_than(&params, 3);
    TF_Operation* first = no_op(params.body_graph, "first");
    TF_OperationDescription* description = TF_NewOperation(params.body_graph, "AddV2", "next");
    TF_AddInput(description, params.body_inputs[0]);
    TF_AddInput(description, int_constant(params.body_graph, "one", 1));
    TF_AddControlInput(description, first);
    params.body_outputs[0] = finish(description);
    params.name = "a/b";
    end("finish", &params);
    fetch("run", results[0]);
    print_graph(graph);
}

static void constant_results(void) {
    TF_Output inputs[] = {int_constant(graph, "start", 0), int_constant(graph, "other", 5)};
    TF_WhileParams params = begin("new", inputs, 2);
    while_less_than(&params, 3);
    params.body_outputs[0] = int_constant(params.body_graph, "seven", 7);
    params.body_outputs[1] = params.body_inputs[0];
    params.name = "swap";
    end("finish", &params);
    run("both", 0, NULL, NULL, 2, results, 0, NULL);
}

IN_NEW_SESSION(counting)
IN_NEW_SESSION(three_variables)
IN_NEW_SESSION(nested)
IN_NEW_SESSION(one_name_twice)
IN_NEW_SESSION(aborted)
IN_NEW_SESSION(no_inputs)
IN_NEW_SESSION(wrong_inputs)
IN_NEW_SESSION(without_condition)
IN_NEW_SESSION(without_body)
IN_NEW_SESSION(without_name)
IN_NEW_SESSION(wrong_condition)
IN_NEW_SESSION(body_of_another_type)
IN_NEW_SESSION(result_of_the_outer_graph)
IN_NEW_SESSION(result_that_is_not_there)
IN_NEW_SESSION(body_reads_the_outer_graph)
IN_NEW_SESSION(gradient_through_a_loop)
IN_NEW_SESSION(gradients_of_all_variables)
IN_NEW_SESSION(controls_and_constants)
IN_NEW_SESSION(constant_results)

static const Case CASES[] = {
    CASE(counting),
    CASE(three_variables),
    CASE(nested),
    CASE(one_name_twice),
    CASE(aborted),
    CASE(no_inputs),
    CASE(wrong_inputs),
    CASE(without_condition),
    CASE(without_body),
    CASE(without_name),
    CASE(wrong_condition),
    CASE(body_of_another_type),
    CASE(result_of_the_outer_graph),
    CASE(result_that_is_not_there),
    CASE(body_reads_the_outer_graph),
    CASE(gradient_through_a_loop),
    CASE(gradients_of_all_variables),
    CASE(controls_and_constants),
    CASE(constant_results),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
