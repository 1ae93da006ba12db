/* Loads a library of ops and runs them: use_custom_op PATH-OF-THE-LIBRARY [--no-wait].
 *
 * `--no-wait` leaves out the asynchronous op: TensorFlow 2.21 gives such a kernel a callback that is gone as soon as the
 * kernel's function returns, so there it must be done by then. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../common/example.h"

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static TF_Output finish(TF_OperationDescription* description, const char* name) {
    TF_Status* status = TF_NewStatus();
    TF_Output output = {TF_FinishOperation(description, status), 0};
    check(name, status);
    TF_DeleteStatus(status);
    return output;
}

/* Whether two waits of 300 ms in one step take less than 600: neither holds a thread while it waits. */
static int wait_twice(TF_Graph* graph, TF_Session* session, TF_Output x, TF_Tensor* feed) {
    TF_Output waits[2];
    for (int i = 0; i < 2; ++i) {
        const char* name = i ? "second" : "first";
        TF_OperationDescription* description = TF_NewOperation(graph, "ExampleWait", name);
        TF_AddInput(description, x);
        TF_SetAttrInt(description, "milliseconds", 300);
        waits[i] = finish(description, name);
    }
    TF_Tensor* results[2] = {NULL, NULL};
    double start = seconds();
    run(session, 1, &x, &feed, 2, waits, results, NULL);
    double taken = seconds() - start;
    printf("two waits of 0.3 s took %s 0.6 s\n", taken < 0.6 ? "less than" : "at least");
    for (int i = 0; i < 2; ++i) TF_DeleteTensor(results[i]);
    return taken < 0.6;
}

int main(int argc, char** argv) {
    if (argc < 2) fail("use_custom_op PATH-OF-THE-LIBRARY [--no-wait]");
    TF_Status* status = TF_NewStatus();
    TF_Library* library = TF_LoadLibrary(argv[1], status);
    check("the library", status);
    TF_Buffer ops = TF_GetOpList(library);
    printf("definitions of its ops: %s\n", ops.length > 0 ? "some" : "none");

    TF_Graph* graph = TF_NewGraph();
    TF_OperationDescription* description = TF_NewOperation(graph, "Placeholder", "x");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_Output x = finish(description, "x");
    description = TF_NewOperation(graph, "ExampleSmooth", "smooth");
    TF_AddInput(description, x);
    TF_SetAttrFloat(description, "factor", 0.75f);
    TF_Output y = finish(description, "smooth");
    printf("extents of its output: %d\n", TF_GraphGetTensorNumDims(graph, y, status));

    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_NewSession(graph, options, status);
    check("session", status);
    TF_DeleteSessionOptions(options);
    const int64_t dims[] = {4};
    const float values[] = {8, 8, 0, 8}, expected[] = {2, 3.5f, 2.625f, 3.96875f};
    TF_Tensor *feed = new_tensor(TF_FLOAT, 1, dims, values), *result = NULL;
    run(session, 1, &x, &feed, 1, &y, &result, NULL);
    const float* smooth = TF_TensorData(result);
    printf("smooth: %g %g %g %g\n", smooth[0], smooth[1], smooth[2], smooth[3]);
    int is_right = memcmp(smooth, expected, sizeof(expected)) == 0;
    is_right &= memcmp(TF_TensorData(feed), values, sizeof(values)) == 0; /* a feed never changes */
    if (argc == 2) is_right &= wait_twice(graph, session, x, feed);

    TF_DeleteTensor(result);
    TF_DeleteTensor(feed);
    TF_DeleteSession(session, status);
    TF_DeleteGraph(graph);
    TF_DeleteLibraryHandle(library);
    TF_DeleteStatus(status);
    return is_right ? 0 : 1;
}
