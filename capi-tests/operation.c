/* Getters of operations: arguments, edges, definitions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/print_graph.h"

/* x, axis -> split (three outputs); n; pack of split:2, split:0 with control inputs n and x. */
typedef struct {
    TF_Graph* graph;
    TF_Output x, axis, split, pack;
    TF_Operation* n;
} Sample;

static Sample make_sample(void) {
    Sample s;
    const int64_t dims[] = {6, -1};
    s.graph = TF_NewGraph();
    s.x = shaped_placeholder(s.graph, "x", TF_FLOAT, 2, dims);
    s.axis = int_constant(s.graph, "axis", 0);
    TF_OperationDescription* description = TF_NewOperation(s.graph, "Split", "split");
    TF_AddInput(description, s.axis);
    TF_AddInput(description, s.x);
    TF_SetAttrInt(description, "num_split", 3);
    TF_SetDevice(description, "/device:CPU:0");
    s.split = finish(description);
    s.n = no_op(s.graph, "n");
    description = TF_NewOperation(s.graph, "Pack", "pack");
    const TF_Output parts[] = {{s.split.oper, 2}, {s.split.oper, 0}};
    TF_AddInputList(description, parts, 2);
    TF_AddControlInput(description, s.n);
    TF_AddControlInput(description, s.x.oper);
    s.pack = finish(description);
    return s;
}

static void names_and_types(void) {
    Sample s = make_sample();
    printf("%s %s '%s'\n", TF_OperationName(s.split.oper), TF_OperationOpType(s.split.oper),
           TF_OperationDevice(s.split.oper));
    printf("'%s'\n", TF_OperationDevice(s.pack.oper));
    printf("outputs %d %d %d\n", TF_OperationNumOutputs(s.split.oper), TF_OperationNumOutputs(s.pack.oper),
           TF_OperationNumOutputs(s.n));
    printf("inputs %d %d %d\n", TF_OperationNumInputs(s.split.oper), TF_OperationNumInputs(s.pack.oper),
           TF_OperationNumInputs(s.n));
    for (int i = 0; i < 3; ++i) {
        TF_Output output = {s.split.oper, i};
        printf("output type %d\n", (int)TF_OperationOutputType(output));
    }
    for (int i = 0; i < 2; ++i) {
        TF_Input input = {s.split.oper, i};
        TF_Output from = TF_OperationInput(input);
        printf("input type %d from %s:%d\n", (int)TF_OperationInputType(input), TF_OperationName(from.oper),
               from.index);
    }
    TF_DeleteGraph(s.graph);
}

static void list_lengths(void) {
    Sample s = make_sample();
    TF_Status* status = TF_NewStatus();
    printf("%d\n", TF_OperationOutputListLength(s.split.oper, "output", fresh(status)));
    print_status("output", status);
    printf("%d\n", TF_OperationInputListLength(s.pack.oper, "values", fresh(status)));
    print_status("values", status);
    printf("%d\n", TF_OperationInputListLength(s.split.oper, "value", fresh(status)));
    print_status("value", status);
    printf("%d\n", TF_OperationInputListLength(s.split.oper, "nothing", fresh(status)));
    print_status("no such input", status);
    printf("%d\n", TF_OperationOutputListLength(s.split.oper, "nothing", fresh(status)));
    print_status("no such output", status);
    TF_DeleteStatus(status);
    TF_DeleteGraph(s.graph);
}

static void all_inputs(void) {
    Sample s = make_sample();
    TF_Output inputs[4] = {{NULL, -1}, {NULL, -1}, {NULL, -1}, {NULL, -1}};
    TF_OperationAllInputs(s.pack.oper, inputs, 2);
    for (int i = 0; i < 2; ++i) printf("%s:%d\n", TF_OperationName(inputs[i].oper), inputs[i].index);
    TF_Output one[2] = {{NULL, -1}, {NULL, -1}};
    TF_OperationAllInputs(s.pack.oper, one, 1);
    printf("%s:%d, untouched %d\n", TF_OperationName(one[0].oper), one[0].index, one[1].index == -1);
    TF_DeleteGraph(s.graph);
}

static int compare_inputs(const void* a, const void* b) {
    const TF_Input *x = a, *y = b;
    int order = strcmp(TF_OperationName(x->oper), TF_OperationName(y->oper));
    return order ? order : x->index - y->index;
}

static void consumers(void) {
    Sample s = make_sample();
    binary(s.graph, "AddV2", "twice", s.x, s.x);
    TF_Input found[8];
    printf("x has %d\n", TF_OperationOutputNumConsumers(s.x));
    int count = TF_OperationOutputConsumers(s.x, found, 8);
    qsort(found, (size_t)count, sizeof found[0], compare_inputs);
    for (int i = 0; i < count; ++i) printf("  %s input %d\n", TF_OperationName(found[i].oper), found[i].index);
    printf("with room for 1: %d\n", TF_OperationOutputConsumers(s.x, found, 1));
    for (int i = 0; i < 3; ++i) {
        TF_Output output = {s.split.oper, i};
        printf("split:%d has %d\n", i, TF_OperationOutputNumConsumers(output));
    }
    TF_DeleteGraph(s.graph);
}

static int compare_operations(const void* a, const void* b) {
    return strcmp(TF_OperationName(*(TF_Operation* const*)a), TF_OperationName(*(TF_Operation* const*)b));
}

static void control_edges(void) {
    Sample s = make_sample();
    TF_Operation* found[8];
    int count = TF_OperationGetControlInputs(s.pack.oper, found, 8);
    printf("pack: %d, %d control inputs\n", TF_OperationNumControlInputs(s.pack.oper), count);
    qsort(found, (size_t)count, sizeof found[0], compare_operations);
    for (int i = 0; i < count; ++i) printf("  %s\n", TF_OperationName(found[i]));
    printf("with room for 1: %d\n", TF_OperationGetControlInputs(s.pack.oper, found, 1));
    count = TF_OperationGetControlOutputs(s.n, found, 8);
    printf("n: %d, %d control outputs\n", TF_OperationNumControlOutputs(s.n), count);
    for (int i = 0; i < count; ++i) printf("  %s\n", TF_OperationName(found[i]));
    printf("source has: %d %d\n", TF_OperationNumControlInputs(s.n), TF_OperationNumControlOutputs(s.pack.oper));
    TF_DeleteGraph(s.graph);
}

static void node_defs(void) {
    Sample s = make_sample();
    TF_Status* status = TF_NewStatus();
    TF_Operation* const operations[] = {s.x.oper, s.axis.oper, s.split.oper, s.n, s.pack.oper};
    for (int i = 0; i < N_ELEMENTS(operations); ++i) {
        TF_Buffer* buffer = TF_NewBuffer();
        TF_OperationToNodeDef(operations[i], buffer, fresh(status));
        print_status("node", status);
        print_node_def(buffer->data, buffer->length);
        TF_DeleteBuffer(buffer);
    }
    TF_Buffer* full = TF_NewBufferFromString("full", 4);
    TF_OperationToNodeDef(s.n, full, fresh(status));
    print_status("into a full buffer", status);
    TF_DeleteBuffer(full);
    TF_DeleteStatus(status);
    TF_DeleteGraph(s.graph);
}

static void op_defs(void) {
    TF_Status* status = TF_NewStatus();
    TF_Graph* graph = TF_NewGraph();
    static const char* const NAMES[] = {"Add", "Conv2D", "NoSuchOp", ""};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) {
        TF_Buffer* buffer = TF_NewBuffer();
        TF_GraphGetOpDef(graph, NAMES[i], buffer, fresh(status));
        print_status(NAMES[i], status);
        printf("found %d\n", buffer->length > 0);
        TF_DeleteBuffer(buffer);
    }
    TF_Buffer* versions = TF_NewBuffer();
    TF_GraphVersions(graph, versions, fresh(status));
    print_status("versions", status);
    print_bytes(versions->data, versions->length);
    printf("\n");
    TF_DeleteBuffer(versions);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
}

static void attr_names(void) {
    Sample s = make_sample();
    TF_Status* status = TF_NewStatus();
    int count = TF_OperationGetNumAttrs(s.pack.oper);
    printf("%d attributes\n", count);
    int total = 0;
    for (int i = 0; i < count; ++i) {
        char name[64] = "";
        int length = TF_OperationGetAttrNameLength(s.pack.oper, i);
        TF_OperationGetAttrName(s.pack.oper, i, name, fresh(status));
        if (TF_GetCode(status) != TF_OK) print_status("name", status);
        total += length + (strncmp(name, "axis", 4) == 0) + 10 * (name[0] == 'N') + 100 * (name[0] == 'T');
    }
    printf("sum %d\n", total);
    TF_DeleteStatus(status);
    TF_DeleteGraph(s.graph);
}

static const Case CASES[] = {
    {"names_and_types", names_and_types},
    {"list_lengths", list_lengths},
    {"all_inputs", all_inputs},
    {"consumers", consumers},
    {"control_edges", control_edges},
    {"node_defs", node_defs},
    {"op_defs", op_defs},
    {"attr_names", attr_names},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
