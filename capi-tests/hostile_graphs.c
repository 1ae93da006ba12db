/* Graphs that a reasonable program would not make: very long, very deep, endless, circular. Ours only.
 *
 * Each must give a result or an error in time; none may end the process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/expect.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/proto.h"

enum { LONG = 1000000, WIDE = 100000 };

static TF_Output chain(const char* op, TF_Output from, int length) {
    for (int i = 0; i < length; ++i) {
        char name[32];
        snprintf(name, sizeof name, "n%d", i);
        from = unary(graph, op, name, from);
    }
    return from;
}

static void run_chain(TF_Output x, TF_Output y) {
    float value = 1;
    TF_Tensor *feed = tensor_of(TF_FLOAT, 0, NULL, &value), *result = NULL;
    TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    EXPECT_CODE(status, TF_OK);
    EXPECT(result && *(const float*)TF_TensorData(result) == 1);
    TF_DeleteTensor(result);
    TF_DeleteTensor(feed);
}

/* A million nodes one after the other: built, run, exported, imported, deleted. */
static void long_chain(void) {
    double start = seconds();
    TF_Output x = placeholder(graph, "x", TF_FLOAT), y = chain("Neg", x, LONG);
    run_chain(x, y);
    TF_Buffer* def = exported(graph);
    TF_Graph* copy = TF_NewGraph();
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(copy, def, options, status);
    EXPECT_CODE(status, TF_OK);
    EXPECT(TF_GraphOperationByName(copy, "n999999") != NULL);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteGraph(copy);
    TF_DeleteBuffer(def);
    EXPECT(seconds() - start < 250);
}

/* A long chain of constants, to be folded. */
static void long_constants(void) {
    TF_Output y = chain("Neg", float_constant(graph, "c", 1), WIDE);
    try_fetch(session, y, 0, status);
    EXPECT_CODE(status, TF_OK);
}

/* Gradients along a long chain. */
static void long_gradient(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), y = chain("Neg", x, WIDE), dx = {NULL, 0};
    TF_AddGradients(graph, &y, 1, &x, 1, NULL, status, &dx);
    EXPECT_CODE(status, TF_OK);
    run_chain(x, dx);
}

/* One node that reads very many, and waits for very many. */
static void wide_node(void) {
    TF_Output x = float_constant(graph, "x", 1);
    TF_Output* all = malloc(WIDE * sizeof *all);
    for (int i = 0; i < WIDE; ++i) all[i] = x;
    TF_OperationDescription* description = TF_NewOperation(graph, "AddN", "sum");
    TF_AddInputList(description, all, WIDE);
    for (int i = 0; i < WIDE; ++i) TF_AddControlInput(description, x.oper);
    TF_Output sum = finish(description);
    try_fetch(session, sum, 0, status);
    EXPECT_CODE(status, TF_OK);
    free(all);
}

/* Text of a function `name` of one float that calls `callee`; as If, the call is one of two branches. */
static void add_function(const char* name, const char* callee, const char* op) {
    TF_Graph* body = TF_NewGraph();
    TF_Output x = placeholder(body, "x", TF_FLOAT), y = x;
    if (callee) {
        TF_DataType type = TF_FLOAT;
        TF_OperationDescription* description = TF_NewOperation(body, op, "call");
        if (strcmp(op, "PartitionedCall") == 0) {
            TF_SetAttrFuncName(description, "f", callee, strlen(callee));
        } else {
            TF_AddInput(description, x);
            TF_SetAttrFuncName(description, "then_branch", callee, strlen(callee));
            TF_SetAttrFuncName(description, "else_branch", callee, strlen(callee));
        }
        TF_AddInputList(description, &x, 1);
        TF_SetAttrTypeList(description, "Tout", &type, 1);
        y = finish(description);
    }
    TF_Function* function =
        TF_GraphToFunction(body, name, 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, status);
    EXPECT_CODE(status, TF_OK);
    TF_GraphCopyFunction(graph, function, NULL, status);
    EXPECT_CODE(status, TF_OK);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
}

static TF_Output call(const char* name, const char* function) {
    TF_OperationDescription* description = TF_NewOperation(graph, "PartitionedCall", name);
    char one[64];
    snprintf(one, sizeof one, "one_%s", name);
    TF_Output x = float_constant(graph, one, 1);
    TF_DataType type = TF_FLOAT;
    TF_AddInputList(description, &x, 1);
    TF_SetAttrTypeList(description, "Tout", &type, 1);
    TF_SetAttrFuncName(description, "f", function, strlen(function));
    return finish(description);
}

/* Functions that call one another a thousand deep: a result, or an error. */
static void deep_functions(void) {
    add_function("f0", NULL, NULL);
    for (int i = 1; i < 1000; ++i) {
        char name[32], callee[32];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(callee, sizeof callee, "f%d", i - 1);
        add_function(name, callee, "PartitionedCall");
    }
    try_fetch(session, call("shallow", "f20"), 0, status);
    EXPECT_CODE(status, TF_OK);
    try_fetch(session, call("deep", "f999"), 0, status);
    if (TF_GetCode(status) != TF_OK) EXPECT_CODE(status, TF_RESOURCE_EXHAUSTED);
}

/* Functions that call themselves, by a call and by a choice. */
static void endless_functions(void) {
    add_function("r", "r", "PartitionedCall");
    try_fetch(session, call("c", "r"), 0, status);
    EXPECT_CODE(status, TF_RESOURCE_EXHAUSTED);
    add_function("s", "s", "If");
    try_fetch(session, call("d", "s"), 0, status);
    EXPECT_CODE(status, TF_RESOURCE_EXHAUSTED);
    add_function("a", "b", "PartitionedCall");
    add_function("b", "a", "StatelessIf");
    try_fetch(session, call("e", "a"), 0, status);
    EXPECT_CODE(status, TF_RESOURCE_EXHAUSTED);
}

static void* in_thread(void* unused) {
    (void)unused;
    in_new_session(endless_functions);
    return NULL;
}

/* The same on a thread with a small stack. */
static void endless_functions_on_a_small_stack(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_create(&thread, &attributes, in_thread, NULL);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

/* Adds a node to a GraphDef. `inputs` ends with NULL. */
static void add_node(Message* def, const char* name, const char* op, const char* const* inputs, int n_types) {
    Message node = {0};
    message_text(&node, 1, name);
    message_text(&node, 2, op);
    for (; *inputs; ++inputs) message_text(&node, 3, *inputs);
    static const char* const TYPES[] = {"T", "N"};
    for (int i = 0; i < n_types; ++i) {
        Message entry = {0}, value = {0};
        message_text(&entry, 1, TYPES[i]);
        message_int(&value, i == 0 ? 6 : 3, i == 0 ? TF_FLOAT : 2);
        message_part(&entry, 2, &value);
        message_part(&node, 5, &entry);
    }
    message_part(def, 1, &node);
}

static void import(Message* def) {
    TF_Buffer* buffer = TF_NewBufferFromString(def->data, def->length);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, buffer, options, status);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(buffer);
    message_free(def);
}

#define INPUTS(...) ((const char* const[]){__VA_ARGS__, NULL})

/* Nodes that read one another, or themselves. */
static void circles(void) {
    Message def = {0};
    add_node(&def, "a", "Neg", INPUTS("b"), 1);
    add_node(&def, "b", "Neg", INPUTS("a"), 1);
    import(&def);
    EXPECT_ERROR(status);
    def = (Message){0};
    add_node(&def, "a", "Neg", INPUTS("a"), 1);
    import(&def);
    EXPECT_ERROR(status);
    def = (Message){0};
    add_node(&def, "a", "NoOp", INPUTS("^b"), 0);
    add_node(&def, "b", "NoOp", INPUTS("^a"), 0);
    import(&def);
    EXPECT_ERROR(status);
}

/* A loop of the first kind whose condition is missing: it turns until the deadline, or is refused. */
static void endless_loop(void) {
    Message def = {0};
    add_node(&def, "m", "Merge", INPUTS("n", "n"), 2);
    add_node(&def, "n", "NextIteration", INPUTS("m"), 1);
    import(&def);
    if (TF_GetCode(status) == TF_OK) {
        TF_Output merge = {TF_GraphOperationByName(graph, "m"), 0};
        double start = seconds();
        try_fetch(session, merge, 1000, status);
        EXPECT_ERROR(status);
        EXPECT(seconds() - start < 5);
    }
    TF_SetStatus(status, TF_OK, "");
}

static void add_loop_function(const char* name, bool is_condition) {
    TF_Graph* body = TF_NewGraph();
    TF_Output x = placeholder(body, "x", TF_FLOAT), y = x;
    if (is_condition) {
        bool yes = true;
        y = constant(body, "yes", tensor_of(TF_BOOL, 0, NULL, &yes));
    }
    TF_Function* function =
        TF_GraphToFunction(body, name, 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, status);
    TF_GraphCopyFunction(graph, function, NULL, status);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
}

/* A loop by functions that never ends: the deadline ends it. */
static void endless_while(void) {
    add_loop_function("cond", true);
    add_loop_function("body", false);
    static const char* const OPS[] = {"While", "StatelessWhile"};
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, OPS[i], OPS[i]);
        TF_Output x = float_constant(graph, i == 0 ? "x0" : "x1", 1);
        TF_AddInputList(description, &x, 1);
        TF_SetAttrFuncName(description, "cond", "cond", 4);
        TF_SetAttrFuncName(description, "body", "body", 4);
        TF_Output loop = finish(description);
        double start = seconds();
        try_fetch(session, loop, 500, status);
        EXPECT_CODE(status, TF_DEADLINE_EXCEEDED);
        EXPECT(seconds() - start < 5);
    }
}

IN_NEW_SESSION(long_chain)
IN_NEW_SESSION(long_constants)
IN_NEW_SESSION(long_gradient)
IN_NEW_SESSION(wide_node)
IN_NEW_SESSION(deep_functions)
IN_NEW_SESSION(endless_functions)
IN_NEW_SESSION(circles)
IN_NEW_SESSION(endless_loop)
IN_NEW_SESSION(endless_while)

static const Case CASES[] = {
    CASE(long_chain), CASE(long_constants), CASE(long_gradient), CASE(wide_node),
    CASE(deep_functions), CASE(endless_functions), {"endless_functions_on_a_small_stack", endless_functions_on_a_small_stack},
    CASE(circles), CASE(endless_loop), CASE(endless_while),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
