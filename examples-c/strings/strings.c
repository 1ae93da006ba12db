/* Strings in tensors: fills a vector of TF_TString, joins it with a separator in the graph, and asks for the lengths.
 *
 * A TF_TString of up to 22 bytes lies inside the tensor, a longer one on the heap; both may hold zero bytes. */
#include <stdio.h>
#include <string.h>

#include "../common/example.h"

static TF_Output finish(TF_OperationDescription* description) {
    TF_Status* status = TF_NewStatus();
    TF_Output output = {TF_FinishOperation(description, status), 0};
    check("operation", status);
    TF_DeleteStatus(status);
    return output;
}

int main(void) {
    const char* words[] = {"", "short", "exactly 22 bytes long.", "this one is too long to lie inside"};
    enum { COUNT = 4 };
    const int64_t dims[] = {COUNT};

    TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, dims, 1, COUNT * sizeof(TF_TString));
    TF_TString* elements = TF_TensorData(tensor);
    for (int i = 0; i < COUNT; ++i) {
        TF_StringInit(&elements[i]);
        TF_StringCopy(&elements[i], words[i], strlen(words[i]));
        printf("%zu bytes, %s: '%s'\n", TF_StringGetSize(&elements[i]),
               TF_StringGetType(&elements[i]) == TF_TSTR_SMALL ? "inside " : "on heap", words[i]);
    }

    TF_Status* status = TF_NewStatus();
    TF_Graph* graph = TF_NewGraph();
    TF_OperationDescription* description = TF_NewOperation(graph, "Placeholder", "words");
    TF_SetAttrType(description, "dtype", TF_STRING);
    TF_Output input = finish(description);
    description = TF_NewOperation(graph, "StringLength", "lengths");
    TF_AddInput(description, input);
    TF_Output lengths = finish(description);
    description = TF_NewOperation(graph, "StringJoin", "doubled");
    TF_AddInputList(description, (TF_Output[]){input, input}, 2);
    TF_SetAttrString(description, "separator", "+", 1);
    TF_Output doubled = finish(description);

    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_NewSession(graph, options, status);
    check("session", status);
    TF_DeleteSessionOptions(options);
    TF_Tensor* results[2] = {NULL, NULL};
    run(session, 1, &input, &tensor, 2, (TF_Output[]){lengths, doubled}, results, NULL);
    int wrong = 0;
    for (int i = 0; i < COUNT; ++i) {
        int length = ((const int32_t*)TF_TensorData(results[0]))[i];
        const TF_TString* joined = (const TF_TString*)TF_TensorData(results[1]) + i;
        printf("%d: '%.*s'\n", length, (int)TF_StringGetSize(joined), TF_StringGetDataPointer(joined));
        wrong += length != (int)strlen(words[i]) || TF_StringGetSize(joined) != 2 * strlen(words[i]) + 1;
    }

    TF_DeleteTensor(results[0]);
    TF_DeleteTensor(results[1]);
    for (int i = 0; i < COUNT; ++i) TF_StringDealloc(&elements[i]);
    TF_DeleteTensor(tensor);
    TF_DeleteSession(session, status);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    return wrong;
}
