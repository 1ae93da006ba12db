/* Loading and unloading: dlopen, run, delete everything, dlclose, several times; then exit with a session alive.
 *
 *   lifetime LIBRARY [alive]
 *
 * Not linked against any library. With "alive" it ends right after a run, with everything still there. Exits with 0
 * when all went well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api.h>
#include <unistd.h>

/* clang-format off */
#define FUNCTIONS(X)                                                                                              \
    X(TF_NewStatus) X(TF_DeleteStatus) X(TF_GetCode) X(TF_NewGraph) X(TF_DeleteGraph) X(TF_NewOperation)           \
    X(TF_FinishOperation) X(TF_AddInput) X(TF_SetAttrType) X(TF_NewSessionOptions) X(TF_DeleteSessionOptions)      \
    X(TF_NewSession) X(TF_DeleteSession) X(TF_SessionRun) X(TF_AllocateTensor) X(TF_DeleteTensor) X(TF_TensorData)
/* clang-format on */

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} tf;

static void* load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        exit(1);
    }
#define FIND(name)                                \
    *(void**)&tf.name = dlsym(library, #name);    \
    if (!tf.name) {                               \
        printf("the library has no %s\n", #name); \
        exit(1);                                  \
    }
    FUNCTIONS(FIND)
#undef FIND
    return library;
}

/* Builds -x, runs it, and deletes everything unless `alive`. */
static void use(int alive) {
    TF_Status* status = tf.TF_NewStatus();
    TF_Graph* graph = tf.TF_NewGraph();
    TF_OperationDescription* description = tf.TF_NewOperation(graph, "Placeholder", "x");
    tf.TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_Output x = {tf.TF_FinishOperation(description, status), 0};
    description = tf.TF_NewOperation(graph, "Neg", "y");
    tf.TF_AddInput(description, x);
    TF_Output y = {tf.TF_FinishOperation(description, status), 0};
    TF_SessionOptions* options = tf.TF_NewSessionOptions();
    TF_Session* session = tf.TF_NewSession(graph, options, status);
    TF_Tensor *feed = tf.TF_AllocateTensor(TF_FLOAT, NULL, 0, sizeof(float)), *result = NULL;
    *(float*)tf.TF_TensorData(feed) = 5;
    tf.TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
    if (tf.TF_GetCode(status) != TF_OK || *(float*)tf.TF_TensorData(result) != -5) {
        printf("the run failed\n");
        exit(1);
    }
    if (alive) return;
    tf.TF_DeleteTensor(feed);
    tf.TF_DeleteTensor(result);
    tf.TF_DeleteSession(session, status);
    tf.TF_DeleteSessionOptions(options);
    tf.TF_DeleteGraph(graph);
    tf.TF_DeleteStatus(status);
}

int main(int argc, char** argv) {
    if (argc < 2) {
        printf("usage: lifetime LIBRARY [alive]\n");
        return 1;
    }
    alarm(120); /* a hang at exit is a failure */
    int alive = argc > 2 && strcmp(argv[2], "alive") == 0;
    for (int i = 0; i < (alive ? 1 : 5); ++i) {
        void* library = load(argv[1]);
        use(alive);
        if (!alive) dlclose(library);
    }
    printf("%s: fine\n", alive ? "exit with a session alive" : "loaded, used and closed five times");
    return 0;
}
