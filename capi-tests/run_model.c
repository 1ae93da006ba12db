/* Runs a whole model on the inputs of an .expect file and compares the outputs with the reference's.
 *
 *   run_model MODEL FILE.expect [TOLERANCE [EXACT.expect]]      (default 1e-5 of the largest magnitude)
 *
 * MODEL is the folder of a SavedModel or a frozen GraphDef (*.pb). EXACT holds the same outputs computed in double
 * precision: a model with outputs beyond the tolerance then passes if all its outputs together are no farther from them
 * than the reference's are. Exits with 1 on a difference, 77 without a model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/expect_file.h"
#include "harness/harness.h"

static TF_Session* open_frozen(const char* path, TF_Graph* graph, TF_Status* status) {
    TF_Buffer* definition = read_file(path, -1);
    if (!definition) exit(77);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, definition, options, status);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(definition);
    if (TF_GetCode(status) != TF_OK) return NULL;
    TF_SessionOptions* session_options = TF_NewSessionOptions();
    TF_Session* session = TF_NewSession(graph, session_options, status);
    TF_DeleteSessionOptions(session_options);
    return session;
}

static TF_Session* open_saved_model(const char* folder, TF_Graph* graph, TF_Status* status) {
    const char* tags[] = {"serve"};
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, graph, NULL, status);
    TF_DeleteSessionOptions(options);
    return session;
}

static TF_Output find(TF_Graph* graph, const char* tensor_name) {
    char name[1024];
    snprintf(name, sizeof name, "%s", tensor_name);
    char* colon = strrchr(name, ':');
    TF_Output output = {NULL, colon ? atoi(colon + 1) : 0};
    if (colon) *colon = '\0';
    output.oper = TF_GraphOperationByName(graph, name);
    if (!output.oper) printf("no operation %s\n", name);
    return output;
}

/* What all cases of a file amount to. */
typedef struct {
    int wrong;   /* outputs that are of no use: runs that failed, other types or shapes */
    int unequal; /* outputs beyond the tolerance */
    ExpectDistances distances;
} Verdict;

/* Runs one case; `exact` may be NULL. */
static void run_case(TF_Session* session, TF_Graph* graph, const ExpectCase* one, const ExpectCase* exact,
                     double tolerance, Verdict* verdict) {
    TF_Output inputs[EXPECT_MAX_TENSORS], outputs[EXPECT_MAX_TENSORS];
    TF_Tensor* results[EXPECT_MAX_TENSORS] = {NULL};
    for (int i = 0; i < one->n_inputs; ++i) inputs[i] = find(graph, one->input_names[i]);
    for (int i = 0; i < one->n_outputs; ++i) outputs[i] = find(graph, one->output_names[i]);
    TF_Status* status = TF_NewStatus();
    TF_SessionRun(session, NULL, inputs, one->inputs, one->n_inputs, outputs, results, one->n_outputs, NULL, 0, NULL,
                  status);
    if (TF_GetCode(status) != TF_OK) {
        print_status("run", status);
        verdict->wrong += one->n_outputs;
    } else {
        for (int i = 0; i < one->n_outputs; ++i) {
            const char* name = one->output_names[i];
            bool equal = expect_compare(name, one->outputs[i], results[i], tolerance);
            verdict->unequal += !equal;
            if (exact && i < exact->n_outputs && TF_TensorType(one->outputs[i]) == TF_FLOAT) {
                verdict->wrong += !expect_add_distances(&verdict->distances, name, exact->outputs[i], one->outputs[i],
                                                        results[i]);
            } else {
                verdict->wrong += !equal; /* nothing else speaks for it */
            }
            TF_DeleteTensor(results[i]);
        }
    }
    TF_DeleteStatus(status);
}

int main(int argc, char** argv) {
    if (argc < 3) {
        printf("usage: run_model MODEL FILE.expect [TOLERANCE [EXACT.expect]]\n");
        return 1;
    }
    double tolerance = argc > 3 ? atof(argv[3]) : 1e-5;
    ExpectFile expected, exact = {0, NULL};
    if (!expect_read(argv[2], &expected) || (argc > 4 && !expect_read(argv[4], &exact))) {
        printf("cannot read %s\n", argc > 4 ? argv[4] : argv[2]);
        return 77;
    }
    TF_Status* status = TF_NewStatus();
    TF_Graph* graph = TF_NewGraph();
    size_t length = strlen(argv[1]);
    bool frozen = length > 3 && strcmp(argv[1] + length - 3, ".pb") == 0;
    TF_Session* session = (frozen ? open_frozen : open_saved_model)(argv[1], graph, status);
    print_status(argv[1], status);
    Verdict verdict = {session ? 0 : 1, 0, {{0, 0}, {0, 0}, 0}};
    for (int c = 0; session && c < expected.n_cases; ++c) {
        const ExpectCase* one = &expected.cases[c];
        printf("batch %lld\n", TF_NumDims(one->inputs[0]) ? (long long)TF_Dim(one->inputs[0], 0) : 0);
        const ExpectCase* truth = c < exact.n_cases ? &exact.cases[c] : NULL;
        run_case(session, graph, one, truth, tolerance, &verdict);
        run_case(session, graph, one, truth, tolerance, &verdict); /* a second run takes the prepared path */
    }
    if (session) delete_session(session);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    expect_free(&expected);
    expect_free(&exact);
    return verdict.wrong != 0 || (verdict.unequal != 0 && !expect_no_farther(&verdict.distances));
}
