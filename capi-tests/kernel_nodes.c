/* What a kernel that a program adds sees of its node: the names of its inputs, its definition; and work that goes on after it. */
#include <stdio.h>
#include <string.h>
#include <tensorflow/c/eager/c_api.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/kernels_experimental.h>
#include <tensorflow/c/ops.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/proto.h"

static void same_shape(TF_ShapeInferenceContext* context, TF_Status* result) {
    TF_ShapeHandle* handle = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, handle, result);
    TF_ShapeInferenceContextSetOutput(context, 0, handle, result);
    TF_DeleteShapeHandle(handle);
}

/* The definition that the kernel is made with: name, op and inputs. */
static void* create(TF_OpKernelConstruction* construction) {
    TF_Status* outcome = TF_NewStatus();
    TF_Buffer* def = TF_OpKernelConstruction_GetNodeDef(construction, outcome);
    Fields node = fields_of(def->data, def->length);
    printf("  made:");
    while (next_field(&node)) {
        if (node.field > 3 || !node.bytes) continue;
        printf(" ");
        print_bytes(node.bytes, node.length);
    }
    printf("\n");
    TF_DeleteBuffer(def);
    TF_DeleteStatus(outcome);
    return NULL;
}

static void pass_on(TF_OpKernelContext* context) {
    TF_Status* outcome = TF_NewStatus();
    TF_Tensor* input = NULL;
    TF_GetInput(context, 0, &input, outcome);
    TF_SetOutput(context, 0, input, outcome);
    TF_DeleteTensor(input);
    TF_DeleteStatus(outcome);
}

static void say_inputs(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    printf("  run:");
    for (int i = 0; i < TF_NumInputs(context); ++i) {
        TF_StringView name = TF_GetOpKernelRequestedInput(context, (size_t)i);
        printf(" %.*s", (int)name.len, name.data);
    }
    printf("\n");
    pass_on(context);
}

static void nothing(void* kernel) { (void)kernel; }

static void add_op(void) {
    TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("CapiNamed");
    TF_OpDefinitionBuilderAddInput(builder, "x: float");
    TF_OpDefinitionBuilderAddInput(builder, "y: float");
    TF_OpDefinitionBuilderAddOutput(builder, "z: float");
    TF_OpDefinitionBuilderSetIsStateful(builder, true);
    TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, same_shape);
    TF_RegisterOpDefinition(builder, fresh(status));
    print_status("op", status);
}

static void add_kernel(void (*compute)(void*, TF_OpKernelContext*)) {
    TF_RegisterKernelBuilder("CapiNamed", TF_NewKernelBuilder("CapiNamed", "CPU", create, compute, nothing),
                             fresh(status));
    print_status("kernel", status);
}

static TF_Output named(const char* name, TF_Output x, TF_Output y, TF_Operation* before) {
    TF_OperationDescription* description = TF_NewOperation(graph, "CapiNamed", name);
    TF_AddInput(description, x);
    TF_AddInput(description, y);
    if (before) TF_AddControlInput(description, before);
    TF_Operation* operation = TF_FinishOperation(description, fresh(status));
    print_status(name, status);
    return (TF_Output){operation, 0};
}

static void constants_and_others(void) {
    add_op(), add_kernel(say_inputs);
    TF_Output x = float_constant(graph, "x", 3), y = unary(graph, "Neg", "y", x);
    fetch("first", named("first", x, y, NULL));
    TF_Output third = named("third", y, x, NULL), fourth = named("fourth", x, x, third.oper);
    fetch("after", unary(graph, "Neg", "after", named("second", third, third, fourth.oper)));
}

static void a_later_output(void) {
    add_op(), add_kernel(say_inputs);
    TF_OperationDescription* description = TF_NewOperation(graph, "Unpack", "parts");
    static const float VALUES[] = {1, 2, 3};
    TF_Output whole = shaped_placeholder(graph, "whole", TF_FLOAT, 1, (const int64_t[]){3});
    TF_AddInput(description, whole);
    TF_SetAttrInt(description, "num", 3);
    TF_Operation* parts = TF_FinishOperation(description, fresh(status));
    print_status("parts", status);
    TF_Output sum = named("sum", (TF_Output){parts, 2}, (TF_Output){parts, 0}, NULL);
    run_and_print("run", session, whole, float_vector(3, VALUES), sum, NULL);
}

static void fed(void) {
    add_op(), add_kernel(say_inputs);
    TF_Output x = placeholder(graph, "x", TF_FLOAT), y = float_constant(graph, "y", 2), z = named("z", x, y, NULL);
    run_and_print("one", session, x, float_scalar(5), z, NULL);
    run_and_print("again", session, x, float_scalar(6), z, NULL);
    run_and_print("the constant", session, y, float_scalar(6), named("w", y, y, NULL), NULL);
}

static void eagerly(void) {
    add_op(), add_kernel(say_inputs);
    TFE_ContextOptions* options = TFE_NewContextOptions();
    TFE_Context* eager = TFE_NewContext(options, fresh(status));
    TFE_DeleteContextOptions(options);
    TF_Tensor* three = float_scalar(3);
    TFE_TensorHandle *x = TFE_NewTensorHandle(three, fresh(status)), *z = NULL;
    TF_DeleteTensor(three);
    TFE_Op* op = TFE_NewOp(eager, "CapiNamed", fresh(status));
    TFE_OpAddInput(op, x, fresh(status));
    TFE_OpAddInput(op, x, fresh(status));
    int outputs = 1;
    TFE_Execute(op, &z, &outputs, fresh(status));
    print_status("execute", status);
    TFE_DeleteTensorHandle(z);
    TFE_DeleteTensorHandle(x);
    TFE_DeleteOp(op);
    TFE_DeleteContext(eager);
}

/* Work that goes on within the call: as many ends as beginnings. */
static void say_deferred(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    TF_IncNumDeferredOps(context);
    TF_IncNumDeferredOps(context);
    TF_DecNumDeferredOps(context);
    TF_DecNumDeferredOps(context);
    pass_on(context);
}

static void work_within_the_call(void) {
    add_op(), add_kernel(say_deferred);
    TF_Output x = float_constant(graph, "x", 3);
    fetch("result", named("z", x, x, NULL));
}

IN_NEW_SESSION(constants_and_others)
IN_NEW_SESSION(a_later_output)
IN_NEW_SESSION(fed)
IN_NEW_SESSION(eagerly)
IN_NEW_SESSION(work_within_the_call)

static const Case CASES[] = {
    CASE(constants_and_others), CASE(a_later_output), CASE(fed), CASE(eagerly), CASE(work_within_the_call),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
