/* A plug-in with a graph optimizer: it notes what the calls for optimizers say of the first graph that it gets, and makes
 * every Minimum a Maximum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/experimental/grappler/grappler.h>
#include <tensorflow/c/tf_buffer.h>

#define EXPORT __attribute__((visibility("default")))

/* What the test prints: of the graph in which there is a node of this name. */
static const char PROBED[] = "probed_maximum";
static char notes[1 << 14];
static size_t noted;
static int created, destroyed, failing;

EXPORT const char* optimizer_notes(void) { return notes; }
EXPORT int optimizer_created(void) { return created; }
/* 1: return an error; 2: return bytes that are no graph; 3: return an empty graph. */
EXPORT void optimizer_fail(int how) { failing = how; }

static int compare(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

#define NOTE(...) (noted += (size_t)snprintf(notes + noted, sizeof(notes) - noted, __VA_ARGS__))

typedef void (*SizeCall)(const TF_GrapplerItem*, int*, size_t*, TF_Status*);
typedef void (*ListCall)(const TF_GrapplerItem*, char**, size_t*, int, void*, size_t, TF_Status*);

/* The names of a list, sorted. */
static void note_list(const char* what, const TF_GrapplerItem* item, SizeCall size, ListCall list) {
    TF_Status* status = TF_NewStatus();
    int count = -1;
    size_t storage_size = 0;
    size(item, &count, &storage_size, status);
    NOTE("%s: %d names, %zu bytes, code %d:", what, count, storage_size, (int)TF_GetCode(status));
    char **values = calloc(count + 1, sizeof(char*)), *storage = malloc(storage_size + 1);
    size_t* lengths = calloc(count + 1, sizeof(size_t));
    list(item, values, lengths, count, storage, storage_size, status);
    char** names = calloc(count + 1, sizeof(char*));
    for (int i = 0; i < count; ++i) names[i] = strndup(values[i], lengths[i]);
    qsort(names, count, sizeof(char*), compare);
    for (int i = 0; i < count; ++i) NOTE(" %s", names[i]), free(names[i]);
    list(item, values, lengths, count, storage, 1, status);
    NOTE("; too little storage: code %d\n", (int)TF_GetCode(status));
    free(values), free(lengths), free(storage), free(names);
    TF_DeleteStatus(status);
}

typedef void (*PropertySizeCall)(TF_GraphProperties*, const char*, int*, TF_Status*);
typedef void (*PropertyCall)(TF_GraphProperties*, const char*, TF_Buffer**, int, TF_Status*);

static void note_properties(const char* what, TF_GraphProperties* properties, const char* node, PropertySizeCall size,
                            PropertyCall get) {
    TF_Status* status = TF_NewStatus();
    int count = -1;
    size(properties, node, &count, status);
    NOTE("%s of %s: %d, code %d:", what, node, count, (int)TF_GetCode(status));
    TF_Buffer* buffers[8];
    for (int i = 0; i < count && i < 8; ++i) buffers[i] = TF_NewBuffer();
    get(properties, node, buffers, count, status);
    NOTE(" code %d", (int)TF_GetCode(status));
    for (int i = 0; i < count && i < 8; ++i) {
        NOTE(" [");
        for (size_t k = 0; k < buffers[i]->length; ++k) NOTE("%02x", ((const unsigned char*)buffers[i]->data)[k]);
        NOTE("]");
        TF_DeleteBuffer(buffers[i]);
    }
    NOTE("\n");
    TF_DeleteStatus(status);
}

static void note_inferred(const TF_GrapplerItem* item, int assume_valid_feeds, int values) {
    static const char* const NODES[] = {"x", "c", PROBED, "no_such_node"};
    TF_Status* status = TF_NewStatus();
    TF_GraphProperties* properties = TF_NewGraphProperties(item);
    TF_InferStatically(properties, (TF_Bool)assume_valid_feeds, 0, (TF_Bool)values, (TF_Bool)values, status);
    NOTE("inferred %d %d: code %d\n", assume_valid_feeds, values, (int)TF_GetCode(status));
    for (int i = 0; i < 4; ++i) {
        note_properties("inputs", properties, NODES[i], TF_GetInputPropertiesListSize, TF_GetInputPropertiesList);
        note_properties("outputs", properties, NODES[i], TF_GetOutputPropertiesListSize, TF_GetOutputPropertiesList);
    }
    TF_DeleteGraphProperties(properties);
    TF_DeleteStatus(status);
}

static void note_library(const TF_Buffer* graph) {
    static const char* const OPS[] = {"Maximum", "NoSuchOp", "probe_function"};
    TF_Status* status = TF_NewStatus();
    TF_FunctionLibraryDefinition* library = TF_NewFunctionLibraryDefinition(graph, status);
    NOTE("library: code %d\n", (int)TF_GetCode(status));
    for (int i = 0; i < 3; ++i) {
        TF_Buffer* def = TF_NewBuffer();
        TF_LookUpOpDef(library, OPS[i], def, status);
        NOTE("definition of %s: code %d, begins with", OPS[i], (int)TF_GetCode(status));
        for (size_t k = 0; k < def->length && k < 24; ++k) NOTE(" %02x", ((const unsigned char*)def->data)[k]);
        NOTE("\n");
        TF_DeleteBuffer(def);
    }
    TF_DeleteFunctionLibraryDefinition(library);
    TF_Buffer* broken = TF_NewBufferFromString("\xff\xff\xff", 3);
    library = TF_NewFunctionLibraryDefinition(broken, status);
    NOTE("library of no graph: code %d, %d\n", (int)TF_GetCode(status), library != NULL);
    TF_DeleteBuffer(broken);
    TF_DeleteStatus(status);
}

static void replace(char* bytes, size_t length, const char* old, const char* new_text) {
    size_t n = strlen(old);
    for (size_t i = 0; i + n <= length; ++i)
        if (memcmp(bytes + i, old, n) == 0) memcpy(bytes + i, new_text, n);
}

static int contains(const TF_Buffer* buffer, const char* text) {
    size_t n = strlen(text);
    for (size_t i = 0; i + n <= buffer->length; ++i)
        if (memcmp((const char*)buffer->data + i, text, n) == 0) return 1;
    return 0;
}

static void release(void* data, size_t length) {
    (void)length;
    free(data);
}

static void* create(void) {
    ++created;
    return &created;
}

static void optimize(void* optimizer, const TF_Buffer* graph, const TF_GrapplerItem* item, TF_Buffer* optimized,
                     TF_Status* status) {
    if (optimizer != &created) abort();
    if (!noted && contains(graph, PROBED)) {
        note_list("preserved", item, TF_GetNodesToPreserveListSize, TF_GetNodesToPreserveList);
        note_list("fetched", item, TF_GetFetchNodesListSize, TF_GetFetchNodesList);
        note_inferred(item, 0, 0);
        note_inferred(item, 1, 1);
        note_library(graph);
    }
    if (failing == 1) {
        TF_SetStatus(status, TF_INTERNAL, "the optimizer fails");
        return;
    }
    size_t length = failing == 3 ? 0 : graph->length;
    char* bytes = malloc(length + 1);
    memcpy(bytes, graph->data, length);
    if (failing == 2) memset(bytes, 0xff, length);
    if (failing == 0) replace(bytes, length, "Minimum", "Maximum");
    optimized->data = bytes;
    optimized->length = length;
    optimized->data_deallocator = release;
    TF_SetStatus(status, TF_OK, "");
}

static void destroy(void* optimizer) {
    (void)optimizer;
    ++destroyed;
}

EXPORT void TF_InitGraph(TP_OptimizerRegistrationParams* params, TF_Status* status) {
    params->struct_size = TP_OPTIMIZER_REGISTRATION_PARAMS_STRUCT_SIZE;
    params->device_type = "CPU";
    params->optimizer_configs->struct_size = TP_OPTIMIZER_CONFIGS_STRUCT_SIZE;
    params->optimizer->struct_size = TP_OPTIMIZER_STRUCT_SIZE;
    params->optimizer->create_func = create;
    params->optimizer->optimize_func = optimize;
    params->optimizer->destroy_func = destroy;
    TF_SetStatus(status, TF_OK, "");
}
