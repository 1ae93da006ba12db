#include "example.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check(const char* what, const TF_Status* status) {
    if (TF_GetCode(status) != TF_OK) fail("%s: %s (code %d)", what, TF_Message(status), (int)TF_GetCode(status));
}

void fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

static void free_bytes(void* data, size_t length) {
    (void)length;
    free(data);
}

TF_Buffer* read_file(const char* path) {
    FILE* file = fopen(path, "rb");
    if (!file) fail("cannot open %s", path);
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    fseek(file, 0, SEEK_SET);
    char* data = malloc(length > 0 ? (size_t)length : 1);
    if (length < 0 || !data || fread(data, 1, (size_t)length, file) != (size_t)length) fail("cannot read %s", path);
    fclose(file);
    TF_Buffer* buffer = TF_NewBuffer();
    buffer->data = data;
    buffer->length = (size_t)length;
    buffer->data_deallocator = free_bytes;
    return buffer;
}

TF_Graph* import_graph(const char* path) {
    TF_Status* status = TF_NewStatus();
    TF_Buffer* definition = read_file(path);
    TF_Graph* graph = TF_NewGraph();
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, definition, options, status);
    check(path, status);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(definition);
    TF_DeleteStatus(status);
    return graph;
}

TF_Operation* find_operation(TF_Graph* graph, const char* name) {
    TF_Operation* operation = TF_GraphOperationByName(graph, name);
    if (!operation) fail("the graph has no operation '%s'", name);
    return operation;
}

TF_Output find_output(TF_Graph* graph, const char* tensor_name) {
    char name[256];
    snprintf(name, sizeof name, "%s", tensor_name);
    char* colon = strrchr(name, ':');
    int index = 0;
    if (colon) {
        index = atoi(colon + 1);
        *colon = '\0';
    }
    TF_Output output = {find_operation(graph, name), index};
    return output;
}

TF_Tensor* new_tensor(TF_DataType type, int rank, const int64_t* dims, const void* data) {
    size_t length = TF_DataTypeSize(type);
    for (int i = 0; i < rank; ++i) length *= (size_t)dims[i];
    TF_Tensor* tensor = TF_AllocateTensor(type, dims, rank, length);
    if (!tensor) fail("cannot allocate a tensor of %zu bytes", length);
    if (length > 0) memcpy(TF_TensorData(tensor), data, length);
    return tensor;
}

TF_Tensor* new_string_scalar(const char* text) {
    TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof(TF_TString));
    if (!tensor) fail("cannot allocate a string tensor");
    TF_TString* element = TF_TensorData(tensor);
    TF_StringInit(element);
    TF_StringCopy(element, text, strlen(text));
    return tensor;
}

void run(TF_Session* session, int n_inputs, const TF_Output* inputs, TF_Tensor* const* feeds, int n_outputs,
         const TF_Output* outputs, TF_Tensor** results, const TF_Operation* target) {
    TF_Status* status = TF_NewStatus();
    TF_SessionRun(session, NULL, inputs, feeds, n_inputs, outputs, results, n_outputs, &target, target ? 1 : 0, NULL,
                  status);
    check("run", status);
    TF_DeleteStatus(status);
}
