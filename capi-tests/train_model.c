/* Trains from C: restores the first checkpoint, does the steps of train.expect and compares every loss with the
 * reference's, then saves a checkpoint.
 *
 *   train_model FOLDER PREFIX [TOLERANCE]     (default: 1e-4)
 *
 * FOLDER is one that tools/models/make_models.py wrote (graph.pb, initial.*, final.*, train.expect); PREFIX names the
 * checkpoint to write. The final checkpoint of the reference is restored at the end and must give, on the last batch,
 * the loss that the trained state gives. Exits with 1 on a difference, 77 when there is no such folder. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/expect_file.h"
#include "harness/harness.h"

static TF_Graph* graph;
static TF_Session* session;
static TF_Status* status;

static TF_Output output(const char* name) {
    TF_Output found = {TF_GraphOperationByName(graph, name), 0};
    if (!found.oper) {
        printf("the graph has no operation %s\n", name);
        exit(1);
    }
    return found;
}

static void check(const char* what) {
    if (TF_GetCode(status) == TF_OK) return;
    print_status(what, status);
    exit(1);
}

static void checkpoint(const char* operation, const char* prefix) {
    TF_Output name = output("save/Const");
    const TF_Operation* target = output(operation).oper;
    TF_Tensor* feed = string_scalar(prefix);
    TF_SessionRun(session, NULL, &name, &feed, 1, NULL, NULL, 0, &target, 1, NULL, status);
    check(operation);
    TF_DeleteTensor(feed);
}

static double loss_of(const ExpectCase* step, const TF_Operation* target) {
    TF_Output inputs[2] = {output("x"), output("y")}, loss = output("loss");
    TF_Tensor* result = NULL;
    TF_SessionRun(session, NULL, inputs, step->inputs, 2, &loss, &result, 1, &target, target ? 1 : 0, NULL, status);
    check("step");
    double value = *(const float*)TF_TensorData(result);
    TF_DeleteTensor(result);
    return value;
}

static void open_session(const char* path) {
    TF_Buffer* definition = read_file(path, -1);
    if (!definition) exit(77);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, definition, options, status);
    check("import");
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(definition);
    session = new_session(graph);
    if (!session) exit(1);
}

int main(int argc, char** argv) {
    if (argc < 3) {
        printf("usage: train_model FOLDER PREFIX [TOLERANCE]\n");
        return 1;
    }
    double tolerance = argc > 3 ? atof(argv[3]) : 1e-4, largest = 0.0;
    char path[1024];
    graph = TF_NewGraph();
    status = TF_NewStatus();
    snprintf(path, sizeof path, "%s/graph.pb", argv[1]);
    open_session(path);
    ExpectFile steps;
    snprintf(path, sizeof path, "%s/train.expect", argv[1]);
    if (!expect_read(path, &steps) || steps.n_cases == 0) {
        printf("cannot read %s\n", path);
        return 77;
    }
    snprintf(path, sizeof path, "%s/initial", argv[1]);
    checkpoint("save/restore_all", path);
    for (int i = 0; i < steps.n_cases; ++i) {
        double expected = *(const float*)TF_TensorData(steps.cases[i].outputs[0]);
        double loss = loss_of(&steps.cases[i], output("train").oper);
        double difference = fabs(loss - expected);
        if (!(difference <= largest)) largest = difference;
        if (i % 20 == 0 || i + 1 == steps.n_cases) printf("step %3d: loss %.6f, reference %.6f\n", i, loss, expected);
    }
    bool ok = largest <= tolerance;
    printf("%d steps: largest difference of a loss %.2g: %s\n", steps.n_cases, largest, ok ? "equal" : "FAILED");

    const ExpectCase* last = &steps.cases[steps.n_cases - 1];
    double trained = loss_of(last, NULL);
    checkpoint("save/control_dependency", argv[2]);
    snprintf(path, sizeof path, "%s/final", argv[1]);
    checkpoint("save/restore_all", path);
    double reference = loss_of(last, NULL);
    checkpoint("save/restore_all", argv[2]);
    double restored = loss_of(last, NULL);
    printf("loss after training %.6f, from the reference's checkpoint %.6f, from our own %.6f\n", trained, reference,
           restored);
    ok = ok && fabs(trained - reference) <= tolerance && restored == trained;
    delete_session(session);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    expect_free(&steps);
    return !ok;
}
