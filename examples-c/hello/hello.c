/* Prints the library's version, then adds two scalars: the smallest complete program. */
#include <stdio.h>

#include "../common/example.h"

static TF_Output constant(TF_Graph* graph, const char* name, float value) {
    TF_Status* status = TF_NewStatus();
    TF_Tensor* tensor = new_tensor(TF_FLOAT, 0, NULL, &value);
    TF_OperationDescription* description = TF_NewOperation(graph, "Const", name);
    TF_SetAttrTensor(description, "value", tensor, status);
    check("value", status);
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_Output output = {TF_FinishOperation(description, status), 0};
    check(name, status);
    TF_DeleteTensor(tensor);
    TF_DeleteStatus(status);
    return output;
}

int main(void) {
    printf("Hello from TensorFlow C library version %s\n", TF_Version());

    TF_Status* status = TF_NewStatus();
    TF_Graph* graph = TF_NewGraph();
    TF_OperationDescription* description = TF_NewOperation(graph, "AddV2", "sum");
    TF_AddInput(description, constant(graph, "two", 2.0f));
    TF_AddInput(description, constant(graph, "three", 3.0f));
    TF_Output sum = {TF_FinishOperation(description, status), 0};
    check("sum", status);

    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_NewSession(graph, options, status);
    check("session", status);
    TF_DeleteSessionOptions(options);

    TF_Tensor* result = NULL;
    run(session, 0, NULL, NULL, 1, &sum, &result, NULL);
    float value = *(float*)TF_TensorData(result);
    printf("2 + 3 = %g\n", value);

    TF_DeleteTensor(result);
    TF_DeleteSession(session, status);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    return value == 5.0f ? 0 : 1;
}
