/* Ends of processes in which a thread compiles: main returns, another thread exits, the library is closed, the process
 * forks. Each process runs expressions over and over, until a moment that differs from one to the next.
 *
 *   compiling LIBRARY [PROCESSES]
 *
 * Not linked against any library. Exits with 0 when every process ended as it should. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tensorflow/c/c_api.h>
#include <time.h>
#include <unistd.h>

/* clang-format off */
#define FUNCTIONS(X)                                                                                              \
    X(TF_NewStatus) X(TF_GetCode) X(TF_NewGraph) X(TF_NewOperation) X(TF_FinishOperation) X(TF_AddInput)           \
    X(TF_SetAttrType) X(TF_NewSessionOptions) X(TF_NewSession) X(TF_SessionRun) X(TF_AllocateTensor)               \
    X(TF_DeleteTensor) X(TF_TensorData) X(TF_CloseSession) X(TF_DeleteSession)
/* clang-format on */

enum { EXPRESSIONS = 6, ELEMENTS = 10000, MOMENTS = 40, FORKED = 3, WAYS = 4 };

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} tf;

static void* library;
static TF_Status* status;
static TF_Session* session;
static TF_Output x, results[EXPRESSIONS];
static TF_Tensor* fed;

static void load(const char* path) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        _exit(1);
    }
#define FIND(name)                                \
    *(void**)&tf.name = dlsym(library, #name);    \
    if (!tf.name) {                               \
        printf("the library has no %s\n", #name); \
        _exit(1);                                 \
    }
    FUNCTIONS(FIND)
#undef FIND
}

static TF_Output operation(TF_Graph* graph, const char* op, TF_Output a) {
    static int number;
    char name[32];
    snprintf(name, sizeof name, "node%d", number++);
    TF_OperationDescription* description = tf.TF_NewOperation(graph, op, name);
    if (a.oper)
        tf.TF_AddInput(description, a);
    else
        tf.TF_SetAttrType(description, "dtype", TF_FLOAT);
    return (TF_Output){tf.TF_FinishOperation(description, status), 0};
}

/* Expressions of different structures of one input. */
static void build(void) {
    static const char* const ops[] = {"Tanh", "Exp", "Sigmoid", "Neg", "Abs", "Sqrt"};
    status = tf.TF_NewStatus();
    TF_Graph* graph = tf.TF_NewGraph();
    x = operation(graph, "Placeholder", (TF_Output){NULL, 0});
    for (int i = 0; i < EXPRESSIONS; ++i) {
        results[i] = x;
        for (int k = 0; k < 4 + i; ++k) results[i] = operation(graph, ops[(i + k) % 6], results[i]);
    }
    session = tf.TF_NewSession(graph, tf.TF_NewSessionOptions(), status);
    int64_t elements = ELEMENTS;
    fed = tf.TF_AllocateTensor(TF_FLOAT, &elements, 1, ELEMENTS * sizeof(float));
    for (int i = 0; i < ELEMENTS; ++i) ((float*)tf.TF_TensorData(fed))[i] = (float)(i % 100) / 50;
}

static void run_once(int number) {
    TF_Tensor* result = NULL;
    tf.TF_SessionRun(session, NULL, &x, &fed, 1, &results[number % EXPRESSIONS], &result, 1, NULL, 0, NULL, status);
    if (tf.TF_GetCode(status) != TF_OK) _exit(2);
    tf.TF_DeleteTensor(result);
}

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Every expression often enough to be compiled, and then on until so many milliseconds are over. */
static void run_for(double time) {
    double end = milliseconds() + time;
    for (int i = 0; i < 3 * EXPRESSIONS || milliseconds() < end; ++i) run_once(i);
}

static void* end_process(void* unused) {
    (void)unused;
    exit(0);
}

static void end(int way) {
    pthread_t thread;
    switch (way) {
        case 1:
            pthread_create(&thread, NULL, end_process, NULL);
            for (int i = 0;; ++i) run_once(i);
        case 2:
            tf.TF_CloseSession(session, status);
            tf.TF_DeleteSession(session, status);
            dlclose(library);
            usleep(5000);
            break;
        case FORKED: {
            pid_t child = fork();
            int ended = 0;
            run_for(10);
            if (child > 0 && (waitpid(child, &ended, 0) != child || ended != 0)) _exit(3);
        }
    }
}

static int process(const char* path, int number) {
    alarm(60); /* a hang is a failure */
    load(path);
    build();
    run_for(number / WAYS % MOMENTS);
    end(number % WAYS);
    return 0;
}

int main(int argc, char** argv) {
    if (argc < 2) {
        printf("usage: compiling LIBRARY [PROCESSES]\n");
        return 1;
    }
    setenv("FF_JIT", "auto", 1);
    int processes = argc > 2 ? atoi(argv[2]) : WAYS * MOMENTS;
    int wrong = 0;
    for (int i = 0; i < processes; ++i) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) return process(argv[1], i);
        int ended = 0;
        if (waitpid(child, &ended, 0) == child && ended == 0) continue;
        printf("process %d, way %d: %s %d\n", i, i % WAYS, WIFSIGNALED(ended) ? "signal" : "status",
               WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
        ++wrong;
    }
    printf("%d of %d processes ended as they should\n", processes - wrong, processes);
    return wrong != 0;
}
