/* Measures runs of a frozen graph through the C API of a library, which is loaded by path.
 *
 *   bench_model LIBRARY GRAPH.pb FILE.expect SECONDS
 *
 * FILE.expect (tools/models/expect_file.py) names the tensors to feed and fetch, and holds what to feed; only its first
 * case is read, and its outputs' values are not. Prints "first_run VALUE ms" and "run VALUE ms", the median of the runs
 * that fit into SECONDS, at least three. It does not check results. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api.h>
#include <time.h>

enum { MAX_TENSORS = 16, MAX_RUNS = 4096, HEADER = 16 };

/* clang-format off */
#define FUNCTIONS(X)                                                                                              \
    X(TF_NewStatus) X(TF_GetCode) X(TF_Message) X(TF_NewBufferFromString) X(TF_DeleteBuffer) X(TF_AllocateTensor)  \
    X(TF_DeleteTensor) X(TF_TensorData) X(TF_NewGraph) X(TF_NewImportGraphDefOptions)                              \
    X(TF_DeleteImportGraphDefOptions) X(TF_GraphImportGraphDef) X(TF_GraphOperationByName) X(TF_NewSessionOptions) \
    X(TF_DeleteSessionOptions) X(TF_NewSession) X(TF_SessionRun)
/* clang-format on */

static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} tf;

static TF_Status* status;

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void fail(const char* what, const char* why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void check(const char* what) {
    if (tf.TF_GetCode(status) != TF_OK) fail(what, tf.TF_Message(status));
}

static void load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail(path, dlerror());
#define FIND(name) \
    if (!(*(void**)&tf.name = dlsym(library, #name))) fail(path, "has no " #name);
    FUNCTIONS(FIND)
#undef FIND
    status = tf.TF_NewStatus();
}

/* The bytes of a file, never freed. */
static char* read_file(const char* path, size_t* size) {
    FILE* file = fopen(path, "rb");
    if (!file) fail(path, "cannot be opened");
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char* bytes = malloc(*size + 1);
    if (!bytes || fread(bytes, 1, *size, file) != *size) fail(path, "cannot be read");
    fclose(file);
    return bytes;
}

static TF_Graph* import(const char* path) {
    size_t size;
    char* bytes = read_file(path, &size);
    TF_Buffer* buffer = tf.TF_NewBufferFromString(bytes, size);
    free(bytes);
    TF_Graph* graph = tf.TF_NewGraph();
    TF_ImportGraphDefOptions* options = tf.TF_NewImportGraphDefOptions();
    tf.TF_GraphImportGraphDef(graph, buffer, options, status);
    check(path);
    tf.TF_DeleteImportGraphDefOptions(options);
    tf.TF_DeleteBuffer(buffer);
    return graph;
}

/* A place in an .expect file. */
typedef struct {
    const char* at;
} Reader;

static const char* take(Reader* reader, size_t size) {
    const char* here = reader->at;
    reader->at += size;
    return here;
}

static uint32_t take_u32(Reader* reader) {
    uint32_t value;
    memcpy(&value, take(reader, sizeof value), sizeof value);
    return value;
}

/* Reads one tensor: its place in the graph, and, where `value` is not NULL, what it holds. */
static TF_Output read_tensor(Reader* reader, TF_Graph* graph, TF_Tensor** value) {
    char name[512];
    uint32_t length = take_u32(reader);
    snprintf(name, sizeof name, "%.*s", (int)length, take(reader, length));
    TF_DataType type = (TF_DataType)take_u32(reader);
    int rank = (int)take_u32(reader);
    int64_t dims[8];
    memcpy(dims, take(reader, 8 * (size_t)rank), 8 * (size_t)rank);
    uint64_t size;
    memcpy(&size, take(reader, sizeof size), sizeof size);
    const char* data = take(reader, size);
    if (value) {
        *value = tf.TF_AllocateTensor(type, dims, rank, size);
        memcpy(tf.TF_TensorData(*value), data, size);
    }
    char* colon = strrchr(name, ':');
    if (colon) *colon = '\0';
    TF_Output output = {tf.TF_GraphOperationByName(graph, name), colon ? atoi(colon + 1) : 0};
    if (!output.oper) fail(name, "is not in the graph");
    return output;
}

static int ascending(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    if (argc != 5) fail(argv[0], "usage: bench_model LIBRARY GRAPH.pb FILE.expect SECONDS");
    load(argv[1]);
    TF_Graph* graph = import(argv[2]);
    size_t size;
    Reader reader = {read_file(argv[3], &size) + HEADER};
    int n_inputs = (int)take_u32(&reader), n_outputs = (int)take_u32(&reader);
    if (n_inputs > MAX_TENSORS || n_outputs > MAX_TENSORS) fail(argv[3], "has too many tensors");
    TF_Output inputs[MAX_TENSORS], outputs[MAX_TENSORS];
    TF_Tensor *feeds[MAX_TENSORS], *results[MAX_TENSORS];
    for (int i = 0; i < n_inputs; ++i) inputs[i] = read_tensor(&reader, graph, &feeds[i]);
    for (int i = 0; i < n_outputs; ++i) outputs[i] = read_tensor(&reader, graph, NULL);
    TF_SessionOptions* options = tf.TF_NewSessionOptions();
    TF_Session* session = tf.TF_NewSession(graph, options, status);
    check("session");
    tf.TF_DeleteSessionOptions(options);

    static double times[MAX_RUNS];
    int count = -2; /* the first run is reported apart, the second warms up */
    double limit = atof(argv[4]) * 1e3, begin = milliseconds();
    while (count < 3 || (count < MAX_RUNS && milliseconds() - begin < limit)) {
        double start = milliseconds();
        tf.TF_SessionRun(session, NULL, inputs, feeds, n_inputs, outputs, results, n_outputs, NULL, 0, NULL, status);
        double taken = milliseconds() - start;
        check("run");
        for (int i = 0; i < n_outputs; ++i) tf.TF_DeleteTensor(results[i]);
        if (count == -2) printf("first_run %.3f ms\n", taken);
        if (count == -1) begin = milliseconds();
        if (count >= 0) times[count] = taken;
        ++count;
    }
    qsort(times, (size_t)count, sizeof *times, ascending);
    printf("run %.4f ms\n", times[count / 2]);
    return 0;
}
