#include "in_session.h"

#include <stdio.h>
#include <time.h>

#include "build.h"
#include "harness.h"

TF_Graph* graph;
TF_Session* session;
TF_Status* status;

void in_new_session(void (*body)(void)) {
    graph = TF_NewGraph();
    status = TF_NewStatus();
    session = new_session(graph);
    body();
    delete_session(session);
    TF_DeleteStatus(status);
    TF_DeleteGraph(graph);
}

void run(const char* what, int n_feeds, const TF_Output* inputs, TF_Tensor* const* feeds, int n_fetches,
         const TF_Output* outputs, int n_targets, const TF_Operation* const* targets) {
    TF_Tensor* results[8] = {NULL};
    TF_SessionRun(session, NULL, inputs, feeds, n_feeds, outputs, results, n_fetches, targets, n_targets, NULL,
                  fresh(status));
    print_status(what, status);
    for (int i = 0; i < n_fetches; ++i) {
        if (results[i] && TF_GetCode(status) != TF_OK) printf("a result in spite of the error\n");
        if (results[i]) print_tensor(what, results[i]);
        TF_DeleteTensor(results[i]);
    }
}

void fetch(const char* what, TF_Output output) { run(what, 0, NULL, NULL, 1, &output, 0, NULL); }

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
