/* FF_RunMetadataToTrace and FF_WriteProfile: what they write of a run, and NULL for each of their arguments. Ours only: the
 * reference has no such functions. Says "!! ..." where something is wrong. */
#define _GNU_SOURCE
#include <ferroflow/ferroflow.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/env.h>
#include <unistd.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/proto.h"

/* The op of a cluster of nodes that are compiled. */
#define CLUSTER "_Cluster"

static void check(const char* what, int is_right) {
    if (!is_right) printf("!! %s\n", what);
}

static void check_code(const char* what, TF_Code code) {
    if (TF_GetCode(status) != code) printf("!! %s: code %d, %s\n", what, TF_GetCode(status), TF_Message(status));
    fresh(status);
}

/* The metadata of a run of x + x, with a trace of this level. */
static TF_Buffer* run_traced(int level) {
    static int n_nodes = 0;
    char name[32];
    snprintf(name, sizeof name, "twice_%d", n_nodes++);
    TF_Output x = placeholder(graph, name + 5, TF_FLOAT); /* fed, or nothing would be left to run */
    TF_OperationDescription* description = TF_NewOperation(graph, "AddV2", name);
    TF_AddInput(description, x);
    TF_AddInput(description, x);
    TF_Output sum = finish(description);
    TF_Tensor* feed = float_scalar(2);
    Message message = {0};
    if (level) message_int(&message, 1, level);
    TF_Buffer* options = TF_NewBufferFromString(message.data, message.length);
    TF_Buffer* metadata = TF_NewBuffer();
    TF_Tensor* value = NULL;
    TF_SessionRun(session, options, &x, &feed, 1, &sum, &value, 1, NULL, 0, metadata, fresh(status));
    check_code("run", TF_OK);
    TF_DeleteTensor(feed);
    TF_DeleteTensor(value);
    TF_DeleteBuffer(options);
    message_free(&message);
    return metadata;
}

static int contains(const TF_Buffer* buffer, const char* text) {
    return buffer && buffer->data && memmem(buffer->data, buffer->length, text, strlen(text)) != NULL;
}

static void trace(void) {
    TF_Buffer *metadata = run_traced(3), *json = TF_NewBuffer();
    FF_RunMetadataToTrace(metadata, json, status);
    check_code("trace", TF_OK);
    check("an event", contains(json, "\"name\":\"AddV2\",\"cat\":\"Op\",\"ph\":\"X\""));
    check("a process", contains(json, "device:CPU:0"));
    FF_RunMetadataToTrace(metadata, json, status);
    check_code("a full buffer", TF_INVALID_ARGUMENT);
    TF_DeleteBuffer(json);
    TF_DeleteBuffer(metadata);
}

static void profile(void) {
    TF_Buffer* metadata = run_traced(3);
    char logdir[] = "/tmp/profile_XXXXXX", path[512], host[256] = "";
    check("a folder", mkdtemp(logdir) != NULL);
    FF_WriteProfile(metadata, logdir, "first", status);
    check_code("profile", TF_OK);
    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/plugins/profile/first/%s.xplane.pb", logdir, host);
    TF_Buffer* space = read_file(path, -1);
    check("a plane", contains(space, "/host:CPU"));
    check("an event", contains(space, "twice_0:AddV2"));
    FF_WriteProfile(metadata, logdir, NULL, status);
    check_code("without a name", TF_OK);
    FF_WriteProfile(metadata, logdir, "a/b", status);
    check_code("two names", TF_INVALID_ARGUMENT);
    FF_WriteProfile(metadata, logdir, "..", status);
    check_code("no name", TF_INVALID_ARGUMENT);
    TF_DeleteBuffer(space);
    TF_DeleteBuffer(metadata);
    int64_t files = 0, folders = 0;
    if (getenv("PROFILE_KEEP"))
        printf("%s\n", path);
    else
        TF_DeleteRecursively(logdir, &files, &folders, status);
}

static void wrong_metadata(void) {
    TF_Buffer *untraced = run_traced(0), *bytes = TF_NewBufferFromString("\x0a\xff", 2), *json = TF_NewBuffer();
    FF_RunMetadataToTrace(untraced, json, status);
    check_code("untraced", TF_FAILED_PRECONDITION);
    FF_WriteProfile(untraced, "/tmp", "x", status);
    check_code("untraced", TF_FAILED_PRECONDITION);
    FF_RunMetadataToTrace(bytes, json, status);
    check_code("broken", TF_INVALID_ARGUMENT);
    FF_WriteProfile(bytes, "/tmp", "x", status);
    check_code("broken", TF_INVALID_ARGUMENT);
    TF_DeleteBuffer(untraced);
    TF_DeleteBuffer(bytes);
    TF_DeleteBuffer(json);
}

static void nulls(void) {
    TF_Buffer *metadata = run_traced(3), *json = TF_NewBuffer();
    FF_RunMetadataToTrace(NULL, json, status);
    check_code("no metadata", TF_INVALID_ARGUMENT);
    FF_RunMetadataToTrace(metadata, NULL, status);
    check_code("no trace", TF_INVALID_ARGUMENT);
    FF_RunMetadataToTrace(metadata, json, NULL);
    FF_RunMetadataToTrace(NULL, NULL, NULL);
    FF_WriteProfile(NULL, "/tmp", "x", status);
    check_code("no metadata", TF_INVALID_ARGUMENT);
    FF_WriteProfile(metadata, NULL, "x", status);
    check_code("no logdir", TF_INVALID_ARGUMENT);
    FF_WriteProfile(metadata, "", "x", status);
    check_code("empty logdir", TF_INVALID_ARGUMENT);
    FF_WriteProfile(NULL, NULL, NULL, NULL);
    FF_CodegenSelfTest(NULL);
    TF_DeleteBuffer(metadata);
    TF_DeleteBuffer(json);
}

/* Compilation asked for by the configuration, on processors too: it takes effect, and the record of a run shows it. */
static void compiled(void) {
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 1, (const int64_t[]){4}), y = x;
    static const char* const OPS[] = {"Neg", "Exp", "Sqrt", "Square", "Tanh"};
    for (int i = 0; i < N_ELEMENTS(OPS); ++i) y = unary(graph, OPS[i], OPS[i], y);
    float results[2][4] = {{0}};
    const unsigned char before = TF_SetTfXlaCpuGlobalJit(1);
    for (int level = 0; level < 2; ++level) {
        Message config = {0}, graph_options = {0}, optimizer = {0};
        message_int(&optimizer, 5, level); /* global_jit_level: DEFAULT, ON_1 */
        message_part(&graph_options, 3, &optimizer);
        message_part(&config, 10, &graph_options);
        TF_SessionOptions* options = TF_NewSessionOptions();
        TF_SetConfig(options, config.data, config.length, fresh(status));
        check_code("config", TF_OK);
        TF_Session* with_level = TF_NewSession(graph, options, fresh(status));
        check_code("session", TF_OK);
        static const float VALUES[] = {0.5f, 1, 2, 3};
        TF_Tensor *feed = float_vector(4, VALUES), *value = NULL;
        TF_Buffer *traced = TF_NewBufferFromString("\x08\x03", 2), *metadata = TF_NewBuffer();
        TF_SessionRun(with_level, traced, &x, &feed, 1, &y, &value, 1, NULL, 0, metadata, fresh(status));
        check_code("run", TF_OK);
        check("a program exactly where it was asked for", contains(metadata, CLUSTER) == level);
        if (value) memcpy(results[level], TF_TensorData(value), sizeof results[level]);
        TF_DeleteTensor(feed);
        TF_DeleteTensor(value);
        TF_DeleteBuffer(traced);
        TF_DeleteBuffer(metadata);
        TF_DeleteSessionOptions(options);
        delete_session(with_level);
        message_free(&config);
    }
    check("processors were left out", !before && TF_SetTfXlaCpuGlobalJit(0));
    for (int i = 0; i < 4; ++i) check("the same values", fabsf(results[0][i] - results[1][i]) <= 1e-6f);
}

IN_NEW_SESSION(compiled)
IN_NEW_SESSION(trace)
IN_NEW_SESSION(profile)
IN_NEW_SESSION(wrong_metadata)
IN_NEW_SESSION(nulls)

static const Case CASES[] = {CASE(compiled), CASE(trace), CASE(profile), CASE(wrong_metadata), CASE(nulls)};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
