/* The unified interface: one way to execute ops and to trace them into functions. It is exported, but in no header. */
#include <stdio.h>
#include <tensorflow/c/eager/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_unified_experimental.h>

#include "harness/eager.h"
#include "harness/harness.h"
#include "harness/proto.h"

static TF_ExecutionContext* eager_context(void) {
    status = TF_NewStatus();
    TFE_ContextOptions* options = TFE_NewContextOptions();
    TF_ExecutionContext* made = TF_NewEagerExecutionContext(options, status);
    TFE_DeleteContextOptions(options);
    print_status("eager context", status);
    return made;
}

static TF_AbstractTensor* eager_number(float value) {
    TFE_TensorHandle* handle = number(value);
    TF_AbstractTensor* tensor = TF_CreateAbstractTensorFromEagerTensor(handle, fresh(status));
    if (TF_GetCode(status) != TF_OK) print_status("tensor", status);
    return tensor;
}

static void print_eager(const char* what, TF_AbstractTensor* tensor) {
    TFE_TensorHandle* handle = TF_AbstractTensorGetEagerTensor(tensor, fresh(status));
    print_status(what, status);
    print_handle(what, handle);
}

/* Prints signature and nodes of a function of the context; the order of the rest is not said. */
static void print_function(const char* name) {
    TF_Buffer* buffer = TF_NewBuffer();
    TFE_ContextGetFunctionDef(context, name, buffer, fresh(status));
    print_status("message", status);
    Fields fields = fields_of(buffer->data, buffer->length);
    while (next_field(&fields)) {
        if (fields.field != 1 && fields.field != 3) continue;
        printf("  %d: ", fields.field);
        print_bytes(fields.bytes, fields.length);
        printf("\n");
    }
    TF_DeleteBuffer(buffer);
}

/* Executes an op with two inputs (the second may be missing); NULL when that fails. */
static TF_AbstractTensor* run_op(const char* what, TF_ExecutionContext* where, const char* type, const char* name,
                                 TF_AbstractTensor* a, TF_AbstractTensor* b) {
    TF_AbstractOp* op = TF_NewAbstractOp(where);
    TF_AbstractOpSetOpType(op, type, fresh(status));
    if (TF_GetCode(status) != TF_OK) print_status("type", status);
    if (name) {
        TF_AbstractOpSetOpName(op, name, fresh(status));
        if (TF_GetCode(status) != TF_OK) print_status("name", status);
    }
    TF_AbstractTensor* inputs[] = {a, b};
    TF_OutputList* outputs = TF_NewOutputList();
    TF_OutputListSetNumOutputs(outputs, 1, fresh(status));
    TF_ExecuteOperation(op, b ? 2 : 1, inputs, outputs, fresh(status));
    print_status(what, status);
    TF_AbstractTensor* result = TF_GetCode(status) == TF_OK ? TF_OutputListGet(outputs, 0) : NULL;
    TF_DeleteOutputList(outputs);
    TF_DeleteAbstractOp(op);
    return result;
}

static void eager(void) {
    TF_ExecutionContext* where = eager_context();
    context = TF_ExecutionContextGetTFEContext(where, fresh(status));
    print_status("its context", status);
    TF_AbstractTensor *two = eager_number(2), *three = eager_number(3);
    TF_AbstractTensor* sum = run_op("add", where, "Add", NULL, two, three);
    print_eager("sum", sum);
    TF_AbstractOp* op = TF_NewAbstractOp(where);
    TF_AbstractOpSetOpName(op, "name", fresh(status));
    print_status("a name", status);
    TF_AbstractOpSetOpType(op, "Cast", fresh(status));
    print_status("a type", status);
    TF_AbstractOpSetAttrType(op, "DstT", TF_INT32, fresh(status));
    print_status("an attribute", status);
    TF_OutputList* outputs = TF_NewOutputList();
    TF_OutputListSetNumOutputs(outputs, 1, fresh(status));
    print_status("room", status);
    TF_ExecuteOperation(op, 1, &two, outputs, fresh(status));
    print_status("cast", status);
    printf("%d outputs\n", TF_OutputListNumOutputs(outputs));
    print_eager("cast", TF_OutputListGet(outputs, 0));
    TF_DeleteAbstractTensor(TF_OutputListGet(outputs, 0));
    TF_DeleteAbstractOp(op);
    op = TF_NewAbstractOp(where);
    TF_AbstractOpSetOpType(op, "Nope", fresh(status));
    print_code("no such type", status);
    TF_DeleteAbstractOp(op);
    TF_DeleteOutputList(outputs);
    TF_DeleteAbstractTensor(sum);
    TF_DeleteAbstractTensor(two);
    TF_DeleteAbstractTensor(three);
    TF_DeleteExecutionContext(where);
    TF_DeleteStatus(status);
}

/* square_plus(x) = x * x + x. */
static TF_AbstractFunction* traced(const char* name) {
    TF_ExecutionContext* body = TF_CreateFunction(name, fresh(status));
    print_status("function", status);
    TF_Shape shape = {-1, NULL};
    TF_AbstractTensor* x = TF_AddFunctionParameter(body, TF_FLOAT, shape, fresh(status));
    print_status("parameter", status);
    TF_AbstractTensor *square = run_op("square", body, "Mul", "square", x, x), *y = run_op("sum", body, "Add", "sum", square, x);
    TF_OutputList* outputs = TF_NewOutputList();
    TF_OutputListPushBack(outputs, y, fresh(status));
    print_status("push", status);
    printf("%d outputs\n", TF_OutputListNumOutputs(outputs));
    TF_AbstractFunction* function = TF_FinalizeFunction(body, outputs, fresh(status));
    print_status("finalize", status);
    TF_DeleteOutputList(outputs);
    TF_DeleteAbstractTensor(square);
    TF_DeleteAbstractTensor(y);
    TF_DeleteAbstractTensor(x);
    return function;
}

static void tracing(void) {
    TF_ExecutionContext* where = eager_context();
    context = TF_ExecutionContextGetTFEContext(where, fresh(status));
    TF_AbstractFunction* function = traced("square_plus");
    TF_ExecutionContextRegisterFunction(where, function, fresh(status));
    print_status("register", status);
    printf("has it %d\n", TFE_ContextHasFunction(context, "square_plus"));
    TF_AbstractTensor* three = eager_number(3);
    TF_AbstractTensor* result = run_op("call", where, "square_plus", NULL, three, NULL);
    print_eager("result", result);
    print_function("square_plus");
    TF_DeleteAbstractTensor(result);
    TF_DeleteAbstractTensor(three);
    TF_DeleteAbstractFunction(function);
    TF_DeleteExecutionContext(where);
    TF_DeleteStatus(status);
}

static void shaped_parameters(void) {
    TF_ExecutionContext* where = eager_context();
    context = TF_ExecutionContextGetTFEContext(where, fresh(status));
    TF_ExecutionContext* body = TF_CreateFunction("f", fresh(status));
    int64_t dims[] = {2, -1};
    TF_Shape shape = {2, dims};
    TF_AbstractTensor* x = TF_AddFunctionParameter(body, TF_FLOAT, shape, fresh(status));
    print_status("parameter", status);
    TF_OutputList* outputs = TF_NewOutputList();
    TF_OutputListPushBack(outputs, x, fresh(status));
    TF_OutputListPushBack(outputs, x, fresh(status));
    TF_AbstractFunction* function = TF_FinalizeFunction(body, outputs, fresh(status));
    print_status("finalize", status);
    TF_ExecutionContextRegisterFunction(where, function, fresh(status));
    print_status("register", status);
    print_function("f");
    TF_DeleteOutputList(outputs);
    TF_DeleteAbstractTensor(x);
    TF_DeleteAbstractFunction(function);
    TF_DeleteExecutionContext(where);
    TF_DeleteStatus(status);
}

static void misuse(void) {
    TF_ExecutionContext* where = eager_context();
    context = TF_ExecutionContextGetTFEContext(where, fresh(status));
    TF_Shape shape = {-1, NULL};
    printf("parameter of an eager context %d", TF_AddFunctionParameter(where, TF_FLOAT, shape, fresh(status)) != NULL);
    print_status("", status);
    TF_ExecutionContext* body = TF_CreateFunction("f", fresh(status));
    TF_AbstractTensor *two = eager_number(2), *x = TF_AddFunctionParameter(body, TF_FLOAT, shape, fresh(status));
    printf("eager %d", TF_AbstractTensorGetEagerTensor(x, fresh(status)) != NULL);
    print_code("", status);
    printf("context %d", TF_ExecutionContextGetTFEContext(body, fresh(status)) != NULL);
    print_code("", status);
    TF_AbstractOp* op = TF_NewAbstractOp(body);
    TF_AbstractOpSetOpName(op, "early", fresh(status));
    print_status("name before type", status);
    TF_AbstractOpSetAttrType(op, "T", TF_FLOAT, fresh(status));
    print_status("attribute before type", status);
    TF_AbstractOpSetOpType(op, "Add", fresh(status));
    print_status("type", status);
    TF_AbstractOpSetAttrType(op, "T", TF_FLOAT, fresh(status));
    print_status("attribute before name", status);
    TF_AbstractOpSetOpName(op, "late", fresh(status));
    print_status("name", status);
    TF_AbstractOpSetOpType(op, "Mul", fresh(status));
    print_status("another type", status);
    TF_AbstractOpSetOpName(op, "again", fresh(status));
    print_status("another name", status);
    TF_OutputList* outputs = TF_NewOutputList();
    TF_OutputListSetNumOutputs(outputs, 1, fresh(status));
    TF_AbstractTensor* mixed[] = {x, two};
    TF_ExecuteOperation(op, 2, mixed, outputs, fresh(status));
    print_status("an eager input", status);
    TF_DeleteAbstractOp(op);
    op = TF_NewAbstractOp(body);
    TF_AbstractOpSetOpType(op, "Add", fresh(status));
    TF_ExecuteOperation(op, 0, NULL, outputs, fresh(status));
    print_status("without a name", status);
    TF_DeleteAbstractOp(op);
    op = TF_NewAbstractOp(body);
    TF_AbstractOpSetOpType(op, "Nope", fresh(status));
    TF_AbstractOpSetOpName(op, "nope", fresh(status));
    TF_ExecuteOperation(op, 1, &x, outputs, fresh(status));
    print_code("no such type", status);
    TF_DeleteAbstractOp(op);
    TF_AbstractFunction* function = traced("g");
    TF_ExecutionContextRegisterFunction(body, function, fresh(status));
    print_status("register with a function", status);
    TF_DeleteAbstractFunction(function);
    TF_DeleteOutputList(outputs);
    outputs = TF_NewOutputList();
    TF_OutputListPushBack(outputs, two, fresh(status));
    TF_FinalizeFunction(body, outputs, fresh(status));
    print_status("finalize", status);
    TF_DeleteOutputList(outputs);
    TF_DeleteAbstractTensor(x);
    TF_DeleteAbstractTensor(two);
    TF_DeleteExecutionContext(where);
    TF_DeleteStatus(status);
}

static void implementations(void) {
    status = TF_NewStatus();
    TF_SetTracingImplementation("graphdef", fresh(status));
    print_status("graphdef", status);
    TF_SetTracingImplementation("nope", fresh(status));
    print_status("nope", status);
    TF_ExecutionContext* body = TF_CreateFunction("f", fresh(status));
    print_status("function", status);
    TF_DeleteExecutionContext(body);
    TF_DeleteStatus(status);
}

static const Case CASES[] = {
    {"eager", eager},   {"tracing", tracing},
    {"misuse", misuse}, {"shaped_parameters", shaped_parameters},
    {"implementations", implementations},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
