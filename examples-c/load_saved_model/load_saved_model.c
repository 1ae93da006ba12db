/* Loads any SavedModel, prints its signatures, and runs one on ones (unknown dimensions become 1, or N).
 *
 *   load_saved_model FOLDER [SIGNATURE [N]]        (default: serving_default, 1) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/example.h"
#include "../common/signature.h"

enum { MAX_SIGNATURES = 8 };

static void print_tensor(const char* kind, const SignatureTensor* tensor) {
    printf("  %s %s: type %d, ", kind, tensor->key, (int)tensor->type);
    if (tensor->rank < 0) printf("any shape");
    for (int i = 0; i < tensor->rank; ++i) printf("%s%lld", i ? "," : "[", (long long)tensor->dims[i]);
    printf("%s  (%s)\n", tensor->rank < 0 ? "" : tensor->rank ? "]" : "scalar", tensor->name);
}

static TF_Tensor* ones(const SignatureTensor* description, int64_t unknown) {
    int rank = description->rank < 0 ? 0 : description->rank;
    int64_t dims[SIGNATURE_MAX_RANK], count = 1;
    for (int i = 0; i < rank; ++i) {
        dims[i] = description->dims[i] < 0 ? unknown : description->dims[i];
        count *= dims[i];
    }
    size_t size = TF_DataTypeSize(description->type);
    if (size == 0) fail("input %s has type %d, which this example does not fill", description->key, description->type);
    TF_Tensor* tensor = TF_AllocateTensor(description->type, dims, rank, (size_t)count * size);
    if (!tensor) fail("cannot allocate input %s", description->key);
    void* data = TF_TensorData(tensor);
    memset(data, 0, (size_t)count * size);
    for (int64_t i = 0; i < count; ++i) {
        switch (description->type) {
            case TF_FLOAT: ((float*)data)[i] = 1; break;
            case TF_DOUBLE: ((double*)data)[i] = 1; break;
            case TF_INT64: ((int64_t*)data)[i] = 1; break;
            case TF_INT32: ((int32_t*)data)[i] = 1; break;
            default: ((unsigned char*)data)[(size_t)i * size] = 1; break;
        }
    }
    return tensor;
}

static void print_result(const SignatureTensor* description, const TF_Tensor* result) {
    printf("%s = [", description->key);
    for (int i = 0; i < TF_NumDims(result); ++i) printf("%s%lld", i ? "," : "", (long long)TF_Dim(result, i));
    printf("]:");
    int64_t count = TF_TensorElementCount(result);
    for (int64_t i = 0; i < count && i < 8 && TF_TensorType(result) == TF_FLOAT; ++i) {
        printf(" %.4g", ((const float*)TF_TensorData(result))[i]);
    }
    printf("%s\n", count > 8 ? " ..." : "");
}

static int run_signature(TF_Session* session, TF_Graph* graph, const Signature* signature, int64_t unknown) {
    TF_Output inputs[SIGNATURE_MAX_TENSORS], outputs[SIGNATURE_MAX_TENSORS];
    TF_Tensor *feeds[SIGNATURE_MAX_TENSORS], *results[SIGNATURE_MAX_TENSORS] = {NULL};
    for (int i = 0; i < signature->n_inputs; ++i) {
        inputs[i] = find_output(graph, signature->inputs[i].name);
        feeds[i] = ones(&signature->inputs[i], unknown);
    }
    for (int i = 0; i < signature->n_outputs; ++i) outputs[i] = find_output(graph, signature->outputs[i].name);
    run(session, signature->n_inputs, inputs, feeds, signature->n_outputs, outputs, results, NULL);
    int empty = signature->n_outputs == 0;
    for (int i = 0; i < signature->n_outputs; ++i) {
        print_result(&signature->outputs[i], results[i]);
        TF_DeleteTensor(results[i]);
    }
    for (int i = 0; i < signature->n_inputs; ++i) TF_DeleteTensor(feeds[i]);
    return empty;
}

int main(int argc, char** argv) {
    if (argc < 2) fail("usage: load_saved_model FOLDER [SIGNATURE [N]]");
    const char* wanted = argc > 2 ? argv[2] : "serving_default";
    int64_t unknown = argc > 3 ? atoll(argv[3]) : 1;

    TF_Status* status = TF_NewStatus();
    TF_Graph* graph = TF_NewGraph();
    TF_Buffer* meta_graph = TF_NewBuffer();
    TF_SessionOptions* options = TF_NewSessionOptions();
    const char* tags[] = {"serve"};
    TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, meta_graph, status);
    check(argv[1], status);
    TF_DeleteSessionOptions(options);

    Signature* signatures = calloc(MAX_SIGNATURES, sizeof *signatures);
    int count = signatures ? read_signatures(meta_graph, signatures, MAX_SIGNATURES) : -1;
    if (count < 0) fail("cannot read the signatures");
    const Signature* chosen = NULL;
    for (int i = 0; i < count; ++i) {
        printf("signature %s\n", signatures[i].key);
        for (int k = 0; k < signatures[i].n_inputs; ++k) print_tensor("input ", &signatures[i].inputs[k]);
        for (int k = 0; k < signatures[i].n_outputs; ++k) print_tensor("output", &signatures[i].outputs[k]);
        if (strcmp(signatures[i].key, wanted) == 0) chosen = &signatures[i];
    }
    if (!chosen) fail("the model has no signature '%s'", wanted);
    int empty = run_signature(session, graph, chosen, unknown);

    free(signatures);
    TF_DeleteBuffer(meta_graph);
    TF_DeleteSession(session, status);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    return empty;
}
