/* TF_LoadSessionFromSavedModel: loading, running, and every way in which a folder can be no SavedModel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/proto.h"

static TF_Status* status;

static void model_path(char* path, const char* file) {
    snprintf(path, 1024, "%s/patterns_saved_model%s%s", data_folder(), file[0] ? "/" : "", file);
}

/* Loads and deletes; prints what happened. Returns nothing: a loaded model is run on a fixed picture. */
static void load(const char* what, const char* folder, const char* const* tags, int n_tags) {
    TF_Graph* graph = TF_NewGraph();
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Buffer* meta_graph = TF_NewBuffer();
    TF_Session* session =
        TF_LoadSessionFromSavedModel(options, NULL, folder, tags, n_tags, graph, meta_graph, fresh(status));
    print_status(what, status);
    printf("%s: %s\n", what, session ? "a session" : "NULL");
    if (session) {
        printf("metagraph %d\n", meta_graph->length > 0);
        static float picture[32 * 32 * 3];
        for (int i = 0; i < N_ELEMENTS(picture); ++i) picture[i] = (float)(i / 288 % 2) * 0.8f;
        const int64_t dims[] = {1, 32, 32, 3};
        TF_Output input = {TF_GraphOperationByName(graph, "serving_default_image"), 0};
        TF_Output output = {TF_GraphOperationByName(graph, "StatefulPartitionedCall"), 0};
        TF_Tensor *feed = tensor_of(TF_FLOAT, 4, dims, picture), *result = NULL;
        TF_SessionRun(session, NULL, &input, &feed, 1, &output, &result, 1, NULL, 0, NULL, fresh(status));
        print_code("run", status);
        if (result) {
            for (int i = 0; i < 5; ++i) printf("%.3f ", ((const float*)TF_TensorData(result))[i]);
            printf("\n");
        }
        TF_DeleteTensor(feed);
        TF_DeleteTensor(result);
        delete_session(session);
    }
    TF_DeleteBuffer(meta_graph);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(graph);
}

static const char* const SERVE[] = {"serve"};

static void good(void) {
    char path[1024];
    model_path(path, "");
    load("serve", path, SERVE, 1);
    strcat(path, "/");
    load("with a slash at the end", path, SERVE, 1);
}

static void tags(void) {
    char path[1024];
    model_path(path, "");
    const char* const more[] = {"serve", "missing-tag"};
    const char* const other[] = {"train"};
    const char* const twice[] = {"serve", "serve"};
    load("none", path, NULL, 0);
    load("one too many", path, more, 2);
    load("another", path, other, 1);
    load("one twice", path, twice, 2);
}

static void missing(void) {
    load("no such folder", "there_is_no_such_folder", SERVE, 1);
    mkdir("empty_folder", 0777);
    load("empty folder", "empty_folder", SERVE, 1);
    load("empty path", "", SERVE, 1);
}

static void metagraph(void) {
    char path[1024];
    model_path(path, "");
    TF_Graph* graph = TF_NewGraph();
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Buffer* meta_graph = TF_NewBuffer();
    TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, path, SERVE, 1, graph, meta_graph, fresh(status));
    Fields fields = fields_of(meta_graph->data, meta_graph->length);
    int counts[16] = {0};
    while (next_field(&fields)) counts[fields.field & 15]++;
    printf("broken %d, info %d, graph %d, saver %d, collections %d, signatures %d\n", fields.broken, counts[1],
           counts[2], counts[3], counts[4], counts[5]);
    int n_operations = 0;
    size_t position = 0;
    while (TF_GraphNextOperation(graph, &position)) ++n_operations;
    printf("%d operations, %d functions\n", n_operations, TF_GraphNumFunctions(graph));
    delete_session(session);
    TF_DeleteBuffer(meta_graph);
    TF_DeleteGraph(graph);

    graph = TF_NewGraph();
    session = TF_LoadSessionFromSavedModel(options, NULL, path, SERVE, 1, graph, NULL, fresh(status));
    print_status("without a buffer", status);
    if (session) delete_session(session);
    TF_DeleteGraph(graph);

    graph = TF_NewGraph();
    TF_Buffer* full = TF_NewBufferFromString("full", 4);
    session = TF_LoadSessionFromSavedModel(options, NULL, path, SERVE, 1, graph, full, fresh(status));
    print_status("buffer not empty", status);
    if (session) delete_session(session);
    TF_DeleteBuffer(full);
    TF_DeleteGraph(graph);

    graph = TF_NewGraph();
    TF_Buffer* garbage = TF_NewBufferFromString("\xff\xff\xff", 3);
    session = TF_LoadSessionFromSavedModel(options, garbage, path, SERVE, 1, graph, NULL, fresh(status));
    print_status("garbage as run options", status);
    if (session) delete_session(session);
    TF_DeleteBuffer(garbage);
    TF_DeleteGraph(graph);
    TF_DeleteSessionOptions(options);
}

static void graph_in_use(void) {
    char path[1024];
    model_path(path, "");
    TF_Graph* graph = TF_NewGraph();
    no_op(graph, "NoOp");
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, path, SERVE, 1, graph, NULL, fresh(status));
    print_status("a name taken", status);
    if (session) delete_session(session);
    TF_DeleteSessionOptions(options);
    TF_DeleteGraph(graph);
}

/* Copies a file of the model into `folder`, at most `length` bytes of it; `flip` changes that byte unless negative. */
static void copy_part(const char* folder, const char* file, long length, long flip) {
    char path[1024], target[1024];
    model_path(path, file);
    TF_Buffer* buffer = read_file(path, length);
    if (!buffer) {
        printf("no %s\n", path);
        return;
    }
    char* bytes = malloc(buffer->length + 1);
    memcpy(bytes, buffer->data, buffer->length);
    if (flip >= 0 && (size_t)flip < buffer->length) bytes[flip] = (char)(bytes[flip] ^ 0x41);
    snprintf(target, sizeof target, "%s/%s", folder, file);
    write_file(target, bytes, buffer->length);
    free(bytes);
    TF_DeleteBuffer(buffer);
}

static void make_copy(const char* folder, long model, long index, long data) {
    char variables[1024];
    snprintf(variables, sizeof variables, "%s/variables", folder);
    mkdir(folder, 0777);
    mkdir(variables, 0777);
    copy_part(folder, "saved_model.pb", model, -1);
    if (index != -2) copy_part(folder, "variables/variables.index", index, -1);
    if (data != -2) copy_part(folder, "variables/variables.data-00000-of-00001", data, -1);
}

static void copied(void) {
    make_copy("copied", -1, -1, -1);
    load("whole copy", "copied", SERVE, 1);
}

static void truncated_model(void) {
    static const long LENGTHS[] = {0, 1, 10, 1000, 100000};
    for (int i = 0; i < N_ELEMENTS(LENGTHS); ++i) {
        make_copy("truncated_model", LENGTHS[i], -1, -1);
        load("model cut short", "truncated_model", SERVE, 1);
    }
}

static void truncated_variables(void) {
    make_copy("truncated_index", -1, 100, -1);
    load("index cut short", "truncated_index", SERVE, 1);
    make_copy("truncated_data", -1, -1, 1000);
    load("data cut short", "truncated_data", SERVE, 1);
    make_copy("no_index", -1, -2, -1);
    load("no index", "no_index", SERVE, 1);
    make_copy("no_data", -1, -1, -2);
    load("no data", "no_data", SERVE, 1);
    make_copy("empty_index", -1, 0, -1);
    load("empty index", "empty_index", SERVE, 1);
}

static void flipped_data(void) {
    make_copy("flipped_data", -1, -1, -1);
    copy_part("flipped_data", "variables/variables.data-00000-of-00001", -1, 5000);
    load("a byte of the data flipped", "flipped_data", SERVE, 1);
    make_copy("flipped_index", -1, -1, -1);
    copy_part("flipped_index", "variables/variables.index", -1, 200);
    load("a byte of the index flipped", "flipped_index", SERVE, 1);
}

static void frozen_graph_as_model(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s/patterns.pb", data_folder());
    TF_Buffer* buffer = read_file(path, -1);
    mkdir("frozen_as_model", 0777);
    write_file("frozen_as_model/saved_model.pb", buffer->data, buffer->length);
    TF_DeleteBuffer(buffer);
    load("a frozen graph", "frozen_as_model", SERVE, 1);
    mkdir("text_as_model", 0777);
    write_file("text_as_model/saved_model.pbtxt", "this is no message", 18);
    load("text", "text_as_model", SERVE, 1);
}

#define WITH_STATUS(body)          \
    static void run_##body(void) { \
        status = TF_NewStatus();   \
        body();                    \
        TF_DeleteStatus(status);   \
    }
#define CASE(body) {#body, run_##body}

WITH_STATUS(good)
WITH_STATUS(tags)
WITH_STATUS(missing)
WITH_STATUS(metagraph)
WITH_STATUS(graph_in_use)
WITH_STATUS(copied)
WITH_STATUS(truncated_model)
WITH_STATUS(truncated_variables)
WITH_STATUS(flipped_data)
WITH_STATUS(frozen_graph_as_model)

static const Case CASES[] = {
    CASE(good),
    CASE(tags),
    CASE(missing),
    CASE(metagraph),
    CASE(graph_in_use),
    CASE(copied),
    CASE(truncated_model),
    CASE(truncated_variables),
    CASE(flipped_data),
    CASE(frozen_graph_as_model),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
