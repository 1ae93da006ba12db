/* A graph, a session on it and a status, new for each case, and short ways to run. */
#ifndef CAPI_TESTS_HARNESS_IN_SESSION_H_
#define CAPI_TESTS_HARNESS_IN_SESSION_H_

#include <tensorflow/c/c_api.h>

extern TF_Graph* graph;
extern TF_Session* session;
extern TF_Status* status;

/* Makes the three, runs a case, deletes them. */
void in_new_session(void (*body)(void));

/* Runs with arrays; prints status and results. */
void run(const char* what, int n_feeds, const TF_Output* inputs, TF_Tensor* const* feeds, int n_fetches,
         const TF_Output* outputs, int n_targets, const TF_Operation* const* targets);

/* Fetches one output without feeds. */
void fetch(const char* what, TF_Output output);

/* Seconds since some moment. */
double seconds(void);

#define IN_NEW_SESSION(body) \
    static void run_##body(void) { in_new_session(body); }
#define CASE(body) {#body, run_##body}

#endif
