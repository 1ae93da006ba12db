#include "pitch_model.h"

#include <stdlib.h>
#include <string.h>

#include "../common/example.h"
#include "../common/signature.h"

enum {
    WINDOW = 43844,      /* samples the network looks at */
    WINDOW_FRAMES = 172, /* frames it answers with */
    MARGIN_FRAMES = 15,  /* frames that are thrown away at each side */
    MARGIN = MARGIN_FRAMES * PITCH_FRAME,
    HOP = WINDOW - 2 * MARGIN, /* samples from one window to the next */
    MAX_SIGNATURES = 8
};

typedef struct {
    TF_Graph* graph;
    TF_Session* session;
    TF_Output audio, note, onset;
} Model;

static TF_Output signature_output(TF_Graph* graph, const SignatureTensor* tensors, int count, const char* key) {
    const SignatureTensor* tensor = find_signature_tensor(tensors, count, key);
    if (!tensor) fail("the model's signature has no '%s'", key);
    return find_output(graph, tensor->name);
}

static Model load(const char* folder) {
    TF_Status* status = TF_NewStatus();
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Buffer* meta_graph = TF_NewBuffer();
    Model model;
    model.graph = TF_NewGraph();
    const char* tags[] = {"serve"};
    model.session = TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, model.graph, meta_graph, status);
    check(folder, status);

    Signature* signatures = calloc(MAX_SIGNATURES, sizeof *signatures);
    int count = signatures ? read_signatures(meta_graph, signatures, MAX_SIGNATURES) : -1;
    const Signature* serving = NULL;
    for (int i = 0; i < count; ++i) {
        if (strcmp(signatures[i].key, "serving_default") == 0) serving = &signatures[i];
    }
    if (!serving || serving->n_inputs != 1) fail("%s is not the basic-pitch model", folder);
    model.audio = find_output(model.graph, serving->inputs[0].name);
    model.note = signature_output(model.graph, serving->outputs, serving->n_outputs, "note");
    model.onset = signature_output(model.graph, serving->outputs, serving->n_outputs, "onset");

    free(signatures);
    TF_DeleteBuffer(meta_graph);
    TF_DeleteSessionOptions(options);
    TF_DeleteStatus(status);
    return model;
}

/* Cuts the samples into overlapping windows, zeros around them: [n_windows, WINDOW, 1]. */
static TF_Tensor* make_windows(const float* samples, size_t n_samples, size_t n_windows) {
    const int64_t dims[] = {(int64_t)n_windows, WINDOW, 1};
    size_t length = n_windows * WINDOW * sizeof(float);
    TF_Tensor* windows = TF_AllocateTensor(TF_FLOAT, dims, 3, length);
    if (!windows) fail("cannot allocate %zu windows", n_windows);
    float* data = TF_TensorData(windows);
    memset(data, 0, length);
    for (size_t w = 0; w < n_windows; ++w) {
        size_t skip = w == 0 ? MARGIN : 0;      /* the first window begins before the first sample */
        size_t first = w * HOP + skip - MARGIN; /* the sample at data[w * WINDOW + skip] */
        size_t count = WINDOW - skip;
        if (first + count > n_samples) count = first < n_samples ? n_samples - first : 0;
        memcpy(data + w * WINDOW + skip, samples + first, count * sizeof *samples);
    }
    return windows;
}

/* Takes each moment's frame from the window in whose middle part it lies. */
static float* stitch(const TF_Tensor* windows, size_t n_frames) {
    const float* data = TF_TensorData(windows);
    if (TF_NumDims(windows) != 3 || TF_Dim(windows, 1) != WINDOW_FRAMES || TF_Dim(windows, 2) != PITCH_KEYS) {
        fail("the model's output has an unexpected shape");
    }
    float* frames = malloc(n_frames * PITCH_KEYS * sizeof *frames);
    if (!frames) fail("cannot allocate %zu frames", n_frames);
    for (size_t i = 0; i < n_frames; ++i) {
        size_t sample = i * PITCH_FRAME, window = sample / HOP;
        size_t frame = (sample - window * HOP + MARGIN + PITCH_FRAME / 2) / PITCH_FRAME;
        const float* source = data + (window * WINDOW_FRAMES + frame) * PITCH_KEYS;
        memcpy(frames + i * PITCH_KEYS, source, PITCH_KEYS * sizeof *frames);
    }
    return frames;
}

Posteriorgram pitch_analyze(const char* model_folder, const float* samples, size_t n_samples) {
    Model model = load(model_folder);
    size_t n_windows = (n_samples + HOP - 1) / HOP;
    TF_Tensor* windows = make_windows(samples, n_samples, n_windows);
    TF_Output outputs[] = {model.note, model.onset};
    TF_Tensor* results[2] = {NULL, NULL};
    run(model.session, 1, &model.audio, &windows, 2, outputs, results, NULL);

    Posteriorgram posteriorgram = {n_samples / PITCH_FRAME, NULL, NULL};
    posteriorgram.note = stitch(results[0], posteriorgram.n_frames);
    posteriorgram.onset = stitch(results[1], posteriorgram.n_frames);

    TF_Status* status = TF_NewStatus();
    TF_DeleteTensor(windows);
    TF_DeleteTensor(results[0]);
    TF_DeleteTensor(results[1]);
    TF_DeleteSession(model.session, status);
    TF_DeleteGraph(model.graph);
    TF_DeleteStatus(status);
    return posteriorgram;
}

void posteriorgram_free(Posteriorgram* posteriorgram) {
    free(posteriorgram->note);
    free(posteriorgram->onset);
}
