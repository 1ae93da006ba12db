/* Builds y = relu(x * w + b) operation by operation, asks the graph what it inferred, runs it for two batch sizes
 * and writes the graph out as a GraphDef. */
#include <stdio.h>

#include "../common/example.h"

static TF_Output finish(TF_OperationDescription* description) {
    TF_Status* status = TF_NewStatus();
    TF_Output output = {TF_FinishOperation(description, status), 0};
    check("operation", status);
    TF_DeleteStatus(status);
    return output;
}

static TF_Output placeholder(TF_Graph* graph, const char* name, int rank, const int64_t* dims) {
    TF_OperationDescription* description = TF_NewOperation(graph, "Placeholder", name);
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrShape(description, "shape", dims, rank);
    return finish(description);
}

static TF_Output constant(TF_Graph* graph, const char* name, int rank, const int64_t* dims, const float* values) {
    TF_Status* status = TF_NewStatus();
    TF_Tensor* tensor = new_tensor(TF_FLOAT, rank, dims, values);
    TF_OperationDescription* description = TF_NewOperation(graph, "Const", name);
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrTensor(description, "value", tensor, status);
    check("value", status);
    TF_DeleteTensor(tensor);
    TF_DeleteStatus(status);
    return finish(description);
}

static TF_Output binary(TF_Graph* graph, const char* op, const char* name, TF_Output a, TF_Output b) {
    TF_OperationDescription* description = TF_NewOperation(graph, op, name);
    TF_AddInput(description, a);
    TF_AddInput(description, b);
    return finish(description);
}

static void print_operations(TF_Graph* graph) {
    TF_Status* status = TF_NewStatus();
    size_t position = 0;
    for (TF_Operation* operation; (operation = TF_GraphNextOperation(graph, &position));) {
        printf("  %-6s %-12s", TF_OperationName(operation), TF_OperationOpType(operation));
        for (int i = 0; i < TF_OperationNumOutputs(operation); ++i) {
            TF_Output output = {operation, i};
            int64_t dims[8];
            int rank = TF_GraphGetTensorNumDims(graph, output, status);
            check("rank", status);
            TF_GraphGetTensorShape(graph, output, dims, rank, status);
            check("shape", status);
            for (int d = 0; d < rank; ++d) printf("%s%lld", d ? "," : " [", (long long)dims[d]);
            printf("]");
        }
        printf("\n");
    }
    TF_DeleteStatus(status);
}

int main(void) {
    TF_Status* status = TF_NewStatus();
    TF_Graph* graph = TF_NewGraph();
    TF_Output x = placeholder(graph, "x", 2, (int64_t[]){-1, 3});
    TF_Output w = constant(graph, "w", 2, (int64_t[]){3, 2}, (float[]){1, -1, 2, -2, 3, -3});
    TF_Output b = constant(graph, "b", 1, (int64_t[]){2}, (float[]){0.5f, 4.0f});
    TF_Output product = binary(graph, "MatMul", "xw", x, w);
    TF_Output biased = binary(graph, "BiasAdd", "xw_b", product, b);
    TF_OperationDescription* description = TF_NewOperation(graph, "Relu", "y");
    TF_AddInput(description, biased);
    TF_Output y = finish(description);
    printf("operations and their inferred shapes:\n");
    print_operations(graph);

    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_NewSession(graph, options, status);
    check("session", status);
    TF_DeleteSessionOptions(options);
    const float rows[2][3] = {{1, 0, 0}, {1, 1, 1}};
    const float expected[2][2] = {{1.5f, 3.0f}, {6.5f, 0.0f}};
    int wrong = 0;
    for (int64_t batch = 1; batch <= 2; ++batch) {
        TF_Tensor* feed = new_tensor(TF_FLOAT, 2, (int64_t[]){batch, 3}, rows);
        TF_Tensor* result = NULL;
        run(session, 1, &x, &feed, 1, &y, &result, NULL);
        const float* values = TF_TensorData(result);
        for (int64_t i = 0; i < batch; ++i) {
            printf("batch %lld row %lld: y = %g %g\n", (long long)batch, (long long)i, values[2 * i],
                   values[2 * i + 1]);
            wrong += values[2 * i] != expected[i][0] || values[2 * i + 1] != expected[i][1];
        }
        TF_DeleteTensor(feed);
        TF_DeleteTensor(result);
    }

    TF_Buffer* definition = TF_NewBuffer();
    TF_GraphToGraphDef(graph, definition, status);
    check("export", status);
    printf("as a GraphDef: %zu bytes\n", definition->length);
    TF_DeleteBuffer(definition);
    TF_DeleteSession(session, status);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    return wrong;
}
