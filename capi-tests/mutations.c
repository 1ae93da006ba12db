/* Bad input in quantity: changes bytes of a GraphDef, a SavedModel and a checkpoint, and loads and runs the result.
 *
 *   mutations --data=FOLDER [NAME...]
 *
 * Each case tries many variants, each in a process of its own; one that ends by a signal or takes longer than ten
 * seconds is a fault. The generator is seeded with the number of the variant, which is printed for a fault. Runs on
 * ours only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/build.h"
#include "harness/harness.h"

enum { VARIANTS = 300, SECONDS = 10 };

static uint32_t state;

static uint32_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/* Overwrites, flips, cuts or repeats a few bytes in place; returns the new length, at most the old one. */
static size_t mutate(unsigned char* bytes, size_t length) {
    static const unsigned char TELLING[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (uint32_t i = next_random() % 4 + 1; i > 0 && length > 8; --i) {
        size_t at = next_random() % length;
        switch (next_random() % 4) {
            case 0: bytes[at] = (unsigned char)(bytes[at] ^ 1u << next_random() % 8); break;
            case 1: bytes[at] = TELLING[next_random() % sizeof TELLING]; break;
            case 2: bytes[at] = (unsigned char)next_random(); break;
            default: {
                size_t count = next_random() % 16 + 1;
                if (at + count < length) memmove(bytes + at, bytes + at + count, length - at - count), length -= count;
            }
        }
    }
    return length;
}

/* Runs `body` on variants 1..VARIANTS, each in a process; prints faults and their number. */
static void try_all(void (*body)(void)) {
    int n_faults = 0;
    for (uint32_t variant = 1; variant <= VARIANTS; ++variant) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS);
            state = variant * 2654435761u;
            body();
            _exit(0);
        }
        int how = 0;
        waitpid(child, &how, 0);
        if (!WIFSIGNALED(how)) continue;
        printf("!! variant %u: signal %d\n", variant, WTERMSIG(how));
        ++n_faults;
    }
    printf("%d faults in %d variants\n", n_faults, VARIANTS);
}

static unsigned char* data_bytes(const char* name, size_t* length) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", data_folder(), name);
    TF_Buffer* buffer = read_file(path, -1);
    if (!buffer) exit(1);
    unsigned char* bytes = malloc(buffer->length + 1);
    memcpy(bytes, buffer->data, buffer->length);
    *length = buffer->length;
    TF_DeleteBuffer(buffer);
    return bytes;
}

static void run_imported(TF_Graph* graph) {
    static float picture[32 * 32 * 3];
    const int64_t dims[] = {1, 32, 32, 3};
    TF_Status* status = TF_NewStatus();
    TF_Session* session = new_session(graph);
    TF_Output input = {TF_GraphOperationByName(graph, "image"), 0},
              output = {TF_GraphOperationByName(graph, "Identity"), 0};
    TF_Tensor *feed = tensor_of(TF_FLOAT, 4, dims, picture), *result = NULL;
    if (session && input.oper && output.oper) {
        TF_SessionRun(session, NULL, &input, &feed, 1, &output, &result, 1, NULL, 0, NULL, status);
    }
    TF_DeleteTensor(feed);
    TF_DeleteTensor(result);
    if (session) TF_DeleteSession(session, status);
    TF_DeleteStatus(status);
}

static void import_mutated(const char* name) {
    size_t length;
    unsigned char* bytes = data_bytes(name, &length);
    length = mutate(bytes, length);
    TF_Buffer* buffer = TF_NewBufferFromString(bytes, length);
    TF_Graph* graph = TF_NewGraph();
    TF_Status* status = TF_NewStatus();
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, buffer, options, status);
    if (TF_GetCode(status) == TF_OK) run_imported(graph);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteStatus(status);
    TF_DeleteGraph(graph);
    TF_DeleteBuffer(buffer);
    free(bytes);
}

static void graph_variant(void) { import_mutated("patterns.pb"); }

static void train_variant(void) { import_mutated("train_adam.pb"); }

static const char* const MODEL_FILES[] = {"saved_model.pb", "variables/variables.index",
                                          "variables/variables.data-00000-of-00001"};

/* Loads a copy of the SavedModel with one of its files mutated; the copy is removed. */
static void load_mutated(int which) {
    mkdir("mutated", 0777);
    mkdir("mutated/variables", 0777);
    for (int i = 0; i < N_ELEMENTS(MODEL_FILES); ++i) {
        char from[1024], to[1024];
        size_t length;
        snprintf(from, sizeof from, "patterns_saved_model/%s", MODEL_FILES[i]);
        snprintf(to, sizeof to, "mutated/%s", MODEL_FILES[i]);
        unsigned char* bytes = data_bytes(from, &length);
        if (i == which) length = mutate(bytes, length);
        write_file(to, bytes, length);
        free(bytes);
    }
    const char* tags[] = {"serve"};
    TF_Graph* graph = TF_NewGraph();
    TF_Status* status = TF_NewStatus();
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, "mutated", tags, 1, graph, NULL, status);
    if (session) TF_DeleteSession(session, status);
    TF_DeleteSessionOptions(options);
    TF_DeleteStatus(status);
    TF_DeleteGraph(graph);
    for (int i = 0; i < N_ELEMENTS(MODEL_FILES); ++i) {
        char path[1024];
        snprintf(path, sizeof path, "mutated/%s", MODEL_FILES[i]);
        unlink(path);
    }
    rmdir("mutated/variables");
    rmdir("mutated");
}

static void model_variant(void) { load_mutated(0); }

static void index_variant(void) { load_mutated(1); }

static void data_variant(void) { load_mutated(2); }

static void graph_def(void) { try_all(graph_variant); }

static void train_graph_def(void) { try_all(train_variant); }

static void saved_model(void) { try_all(model_variant); }

static void checkpoint_index(void) { try_all(index_variant); }

static void checkpoint_data(void) { try_all(data_variant); }

static const Case CASES[] = {
    {"graph_def", graph_def},
    {"train_graph_def", train_graph_def},
    {"saved_model", saved_model},
    {"checkpoint_index", checkpoint_index},
    {"checkpoint_data", checkpoint_data},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
