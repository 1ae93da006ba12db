/* Sessions of the first kind, which own their graph and are told everything by name; and what closes all sessions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/proto.h"

static TF_Status* status;
static TF_DeprecatedSession* session;

/* Adds the nodes of a graph, which is deleted. */
static void extend(const char* what, TF_Graph* source) {
    TF_Buffer* def = exported(source);
    TF_ExtendGraph(session, def->data, def->length, fresh(status));
    print_status(what, status);
    TF_DeleteBuffer(def);
    TF_DeleteGraph(source);
}

/* Runs with at most one feed (deleted here), two outputs and one target. */
static void run(const char* what, const char* input, TF_Tensor* feed, const char* output, const char* second,
                const char* target) {
    const char *inputs[] = {input}, *outputs[] = {output, second}, *targets[] = {target};
    TF_Tensor *feeds[] = {feed}, *results[] = {NULL, NULL};
    int count = (output != NULL) + (second != NULL);
    TF_Run(session, NULL, inputs, feeds, feed ? 1 : 0, outputs, results, count, targets, target ? 1 : 0, NULL,
           fresh(status));
    print_status(what, status);
    for (int i = 0; i < count; ++i) {
        if (results[i]) print_tensor(outputs[i], results[i]);
        TF_DeleteTensor(results[i]);
    }
    TF_DeleteTensor(feed);
}

static TF_Graph* square(void) {
    TF_Graph* source = TF_NewGraph();
    TF_Output x = placeholder(source, "x", TF_FLOAT);
    unary(source, "Square", "squared", x);
    no_op(source, "nothing");
    return source;
}

static void runs(void) {
    extend("extend", square());
    run("square", "x", float_scalar(3), "squared", NULL, NULL);
    run("with an index", "x:0", float_scalar(4), "squared:0", NULL, NULL);
    run("two", "x", float_scalar(5), "squared", "squared:0", NULL);
    run("target", NULL, NULL, NULL, NULL, "nothing");
    run("fetch and target", "x", float_scalar(5), "squared", NULL, "nothing");
}

static void wrong_names(void) {
    extend("extend", square());
    run("no such output", "x", float_scalar(3), "none", NULL, NULL);
    run("no such input", "none", float_scalar(3), "squared", NULL, NULL);
    run("no such target", NULL, NULL, NULL, NULL, "none");
    run("output 1", "x", float_scalar(3), "squared:1", NULL, NULL);
    run("not fed", NULL, NULL, "squared", NULL, NULL);
    run("output of a NoOp", NULL, NULL, "nothing:0", NULL, NULL);
    run("nothing", NULL, NULL, NULL, NULL, NULL);
    run("target with an index", NULL, NULL, NULL, NULL, "nothing:0");
    run("fed and fetched", "x", float_scalar(3), "x", NULL, NULL);
    run("still usable", "x", float_scalar(3), "squared", NULL, NULL);
}

static void growing(void) {
    run("empty", NULL, NULL, "x", NULL, NULL);
    extend("extend", square());
    run("square", "x", float_scalar(3), "squared", NULL, NULL);
    extend("again", square());
    TF_Graph* more = TF_NewGraph();
    float_constant(more, "more", 7);
    extend("more", more);
    run("both", "x", float_scalar(3), "squared", "more", NULL);
    TF_ExtendGraph(session, "no graph", 8, fresh(status));
    print_status("garbage", status);
    TF_ExtendGraph(session, "", 0, fresh(status));
    print_status("nothing", status);
    run("still usable", NULL, NULL, "more", NULL, NULL);
}

static void options_and_metadata(void) {
    extend("extend", square());
    const char *inputs[] = {"x"}, *outputs[] = {"squared"};
    TF_Tensor *feeds[] = {float_scalar(3)}, *results[] = {NULL};
    TF_Buffer *options = TF_NewBufferFromString("\x08\x03", 2), *metadata = TF_NewBuffer();
    TF_Run(session, options, inputs, feeds, 1, outputs, results, 1, NULL, 0, metadata, fresh(status));
    print_status("trace", status);
    printf("metadata: %d\n", metadata->length > 0);
    TF_DeleteTensor(results[0]);
    results[0] = NULL;
    TF_Buffer* garbage = TF_NewBufferFromString("\xff\xff\xff", 3);
    TF_Run(session, garbage, inputs, feeds, 1, outputs, results, 1, NULL, 0, NULL, fresh(status));
    print_status("garbage as options", status);
    TF_Run(session, NULL, inputs, feeds, 1, outputs, results, 1, NULL, 0, metadata, fresh(status));
    print_status("metadata not empty", status);
    TF_DeleteTensor(feeds[0]);
    TF_DeleteBuffer(garbage);
    TF_DeleteBuffer(options);
    TF_DeleteBuffer(metadata);
}

static void devices_and_closing(void) {
    TF_DeviceList* list = TF_DeprecatedSessionListDevices(session, fresh(status));
    print_status("list", status);
    printf("%d: %s\n", TF_DeviceListCount(list), TF_DeviceListName(list, 0, fresh(status)));
    printf("incarnation: %d\n", TF_DeviceListIncarnation(list, 0, fresh(status)) != 0);
    print_status("incarnation", status);
    printf("%d\n", (int)TF_DeviceListIncarnation(list, 9, fresh(status)));
    print_status("beyond", status);
    TF_DeleteDeviceList(list);
    extend("extend", square());
    TF_CloseDeprecatedSession(session, fresh(status));
    print_status("close", status);
    run("closed", "x", float_scalar(3), "squared", NULL, NULL);
    TF_CloseDeprecatedSession(session, fresh(status));
    print_status("close again", status);
}

static void unknown_target(void) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetTarget(options, "nonsense");
    TF_DeprecatedSession* none = TF_NewDeprecatedSession(options, fresh(status));
    print_code("session", status);
    printf("%s\n", none ? "a session" : "NULL");
    TF_DeleteSessionOptions(options);
}

static void reset(void) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    const char* containers[] = {"localhost"};
    TF_Reset(options, containers, 0, fresh(status));
    print_status("reset", status);
    TF_Reset(options, containers, 1, fresh(status));
    print_status("reset of a container", status);
    TF_SetTarget(options, "nonsense");
    TF_Reset(options, containers, 0, fresh(status));
    print_code("unknown target", status);
    TF_DeleteSessionOptions(options);
    extend("extend", square());
    run("after it", "x", float_scalar(3), "squared", NULL, NULL);
}

static void in_new_session(void (*body)(void)) {
    status = TF_NewStatus();
    TF_SessionOptions* options = TF_NewSessionOptions();
    session = TF_NewDeprecatedSession(options, status);
    if (TF_GetCode(status) != TF_OK) print_status("session", status);
    TF_DeleteSessionOptions(options);
    body();
    TF_DeleteDeprecatedSession(session, fresh(status));
    print_status("delete", status);
    TF_DeleteStatus(status);
}

#define IN_NEW_SESSION(body) \
    static void run_##body(void) { in_new_session(body); }
#define CASE(body) {#body, run_##body}

IN_NEW_SESSION(runs)
IN_NEW_SESSION(wrong_names)
IN_NEW_SESSION(growing)
IN_NEW_SESSION(options_and_metadata)
IN_NEW_SESSION(devices_and_closing)
IN_NEW_SESSION(unknown_target)
IN_NEW_SESSION(reset)

static const Case CASES[] = {
    CASE(runs),           CASE(wrong_names), CASE(growing), CASE(options_and_metadata), CASE(devices_and_closing),
    CASE(unknown_target), CASE(reset),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
