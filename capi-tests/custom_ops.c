/* Ops and kernels that a program adds: definitions, shape functions, kernels and what they see. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/proto.h"

/* Registers a definition; specifications end with NULL. */
static void define(const char* name, const char* const* attrs, const char* const* inputs, const char* const* outputs,
                   ShapeInferenceFunction shape) {
    TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
    for (int i = 0; attrs[i]; ++i) TF_OpDefinitionBuilderAddAttr(builder, attrs[i]);
    for (int i = 0; inputs[i]; ++i) TF_OpDefinitionBuilderAddInput(builder, inputs[i]);
    for (int i = 0; outputs[i]; ++i) TF_OpDefinitionBuilderAddOutput(builder, outputs[i]);
    if (shape) TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, shape);
    TF_RegisterOpDefinition(builder, fresh(status));
    print_status(name, status);
}

#define LIST(...) ((const char* const[]){__VA_ARGS__, NULL})
#define NONE ((const char* const[]){NULL})

static void print_shape(const char* what, TF_Output output) {
    int64_t dims[8] = {0};
    int rank = TF_GraphGetTensorNumDims(graph, output, fresh(status));
    if (rank > 0) TF_GraphGetTensorShape(graph, output, dims, rank, fresh(status));
    printf("%s: rank %d:", what, rank);
    for (int i = 0; i < rank; ++i) printf(" %lld", (long long)dims[i]);
    printf("\n");
}

static void same_shape(TF_ShapeInferenceContext* context, TF_Status* result) {
    TF_ShapeHandle* handle = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, handle, result);
    if (TF_GetCode(result) == TF_OK) TF_ShapeInferenceContextSetOutput(context, 0, handle, result);
    TF_DeleteShapeHandle(handle);
}

static void all_unknown(TF_ShapeInferenceContext* context, TF_Status* result) {
    TF_ShapeInferenceContextSetUnknownShape(context, result);
}

static void wrong_definitions(void) {
    define("CapiBadAttr", LIST("nonsense"), NONE, NONE, NULL);
    define("CapiBadType", LIST("a: no_such_type"), NONE, NONE, NULL);
    define("CapiBadInput", NONE, LIST("x: U"), NONE, NULL);
    define("CapiTwice", NONE, LIST("x: float", "x: float"), NONE, NULL);
    define("not_camel", NONE, NONE, NONE, NULL);
}

static void one_op_twice(void) {
    define("CapiSimple", NONE, LIST("x: float"), LIST("y: float"), same_shape);
    define("CapiSimple", NONE, LIST("x: float"), LIST("y: float"), same_shape);
}

static void without_a_shape_function(void) {
    define("CapiShapeless", NONE, LIST("x: float"), LIST("y: float"), NULL);
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_OperationDescription* description = TF_NewOperation(graph, "CapiShapeless", "refused");
    TF_AddInput(description, x);
    finish_and_print(description, "refused");
}

static void definitions(void) {
    define("CapiSimple", NONE, LIST("x: float"), LIST("y: float"), same_shape);
    define("CapiAttrs",
           LIST("T: {float, int32} = DT_FLOAT", "n: int >= 2 = 3", "s: string = 'text'", "l: list(int) = [1, 2]"),
           LIST("x: n * T"), LIST("y: T"), all_unknown);
    TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder("CapiFlags");
    TF_OpDefinitionBuilderAddInput(builder, "x: float");
    TF_OpDefinitionBuilderAddOutput(builder, "y: float");
    TF_OpDefinitionBuilderSetIsCommutative(builder, true);
    TF_OpDefinitionBuilderSetIsAggregate(builder, true);
    TF_OpDefinitionBuilderSetIsStateful(builder, true);
    TF_OpDefinitionBuilderSetAllowsUninitializedInput(builder, true);
    TF_OpDefinitionBuilderDeprecated(builder, 3, "it is old");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, same_shape);
    TF_RegisterOpDefinition(builder, fresh(status));
    print_status("CapiFlags", status);
    TF_DeleteOpDefinitionBuilder(TF_NewOpDefinitionBuilder("CapiNeverRegistered"));
    static const char* const NAMES[] = {"CapiSimple", "CapiAttrs", "CapiFlags", "CapiNeverRegistered"};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) {
        TF_Buffer* def = TF_NewBuffer();
        TF_GraphGetOpDef(graph, NAMES[i], def, fresh(status));
        print_code(NAMES[i], status);
        print_bytes(def->data, def->length);
        printf("\n");
        TF_DeleteBuffer(def);
    }
    TF_Output x = placeholder(graph, "x", TF_FLOAT), two[] = {x, x};
    TF_OperationDescription* description = TF_NewOperation(graph, "CapiAttrs", "attrs");
    TF_AddInputList(description, two, 2);
    finish_and_print(description, "two of them");
    description = TF_NewOperation(graph, "CapiAttrs", "one");
    TF_AddInputList(description, two, 1);
    finish_and_print(description, "one is too few");
    description = TF_NewOperation(graph, "CapiFlags", "flags");
    TF_AddInput(description, x);
    finish_and_print(description, "deprecated");
    TF_Tensor *feed = float_scalar(1), *result = NULL;
    TF_Output y = unary(graph, "CapiSimple", "simple", x);
    TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, fresh(status));
    print_code("no kernel", status);
    TF_DeleteTensor(feed);
}

/* Says what the shape calls answer about the first input, and puts together the output. */
static void inspect(TF_ShapeInferenceContext* context, TF_Status* result) {
    printf("  %lld inputs\n", (long long)TF_ShapeInferenceContextNumInputs(context));
    TF_ShapeHandle *input = TF_NewShapeHandle(), *part = TF_NewShapeHandle(), *whole = TF_NewShapeHandle();
    TF_DimensionHandle* extent = TF_NewDimensionHandle();
    TF_ShapeInferenceContextGetInput(context, 0, input, result);
    int known = TF_ShapeInferenceContextRankKnown(context, input);
    printf("  rank known %d\n", known);
    if (known) printf("  rank %lld\n", (long long)TF_ShapeInferenceContextRank(context, input));
    TF_DataType type = 0;
    TF_ShapeInferenceContext_GetAttrType(context, "T", &type, fresh(result));
    printf("  type %d, code %d\n", (int)type, (int)TF_GetCode(result));
    TF_ShapeInferenceContext_GetAttrType(context, "none", &type, fresh(result));
    printf("  no such attribute: code %d\n", (int)TF_GetCode(result));
    TF_ShapeInferenceContextGetInput(context, 7, part, fresh(result));
    printf("  no such input: code %d\n", (int)TF_GetCode(result));
    TF_ShapeInferenceContextWithRank(context, input, 2, part, fresh(result));
    print_status("  rank 2", result);
    TF_ShapeInferenceContextWithRankAtLeast(context, input, 2, part, fresh(result));
    print_status("  rank at least 2", result);
    TF_ShapeInferenceContextWithRankAtMost(context, input, 2, part, fresh(result));
    print_status("  rank at most 2", result);
    if (known && TF_ShapeInferenceContextRank(context, input) > 0) {
        TF_ShapeInferenceContextDim(context, input, 0, extent);
        printf("  first known %d: %lld\n", TF_DimensionHandleValueKnown(extent),
               (long long)TF_DimensionHandleValue(extent));
        TF_ShapeInferenceContextDim(context, input, -1, extent);
        printf("  last: %lld\n", (long long)TF_DimensionHandleValue(extent));
    }
    TF_ShapeInferenceContextSubshape(context, input, 1, -1, part, fresh(result));
    print_status("  part", result);
    TF_ShapeInferenceContextSubshape(context, input, 5, 9, whole, fresh(result));
    print_status("  part beyond", result);
    TF_ShapeHandle* seven = TF_ShapeInferenceContextVectorFromSize(context, 7);
    TF_ShapeInferenceContextConcatenateShapes(context, seven, part, whole, fresh(result));
    print_status("  joined", result);
    TF_ShapeInferenceContextSetOutput(context, 0, whole, fresh(result));
    print_status("  output", result);
    TF_ShapeHandle* scalar = TF_ShapeInferenceContextScalar(context);
    TF_ShapeInferenceContextSetOutput(context, 1, scalar, fresh(result));
    TF_ShapeInferenceContextSetOutput(context, 9, scalar, fresh(result));
    print_status("  no such output", result);
    fresh(result);
    TF_DeleteShapeHandle(scalar);
    TF_DeleteShapeHandle(seven);
    TF_DeleteShapeHandle(whole);
    TF_DeleteShapeHandle(part);
    TF_DeleteShapeHandle(input);
    TF_DeleteDimensionHandle(extent);
}

static void refuse(TF_ShapeInferenceContext* context, TF_Status* result) {
    (void)context;
    TF_SetStatus(result, TF_OUT_OF_RANGE, "no shape is good enough");
}

static void shape_functions(void) {
    define("CapiInspect", LIST("T: type"), LIST("x: T"), LIST("y: T", "z: T"), inspect);
    define("CapiUnknown", NONE, LIST("x: float"), LIST("y: float"), all_unknown);
    define("CapiRefuse", NONE, LIST("x: float"), LIST("y: float"), refuse);
    static const struct {
        const char* name;
        int rank;
        int64_t dims[3];
    } ROWS[] = {{"matrix", 2, {3, -1}}, {"cube", 3, {2, 3, 4}}, {"scalar", 0, {0}}, {"unknown", -1, {0}}};
    for (int i = 0; i < N_ELEMENTS(ROWS); ++i) {
        char name[32];
        TF_Output x = shaped_placeholder(graph, ROWS[i].name, TF_FLOAT, ROWS[i].rank, ROWS[i].dims);
        snprintf(name, sizeof name, "inspect_%s", ROWS[i].name);
        TF_Output y = unary(graph, "CapiInspect", name, x), z = {y.oper, 1};
        if (!y.oper) continue;
        print_shape(name, y);
        print_shape(name, z);
    }
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 2, (const int64_t[]){2, 3});
    print_shape("unknown", unary(graph, "CapiUnknown", "all_unknown", x));
    TF_OperationDescription* description = TF_NewOperation(graph, "CapiRefuse", "refused");
    TF_AddInput(description, x);
    finish_and_print(description, "refused");
}

static int n_made = 0, n_deleted = 0;

typedef struct {
    float factor;
} Scale;

static void* make_scale(TF_OpKernelConstruction* construction) {
    TF_Status* result = TF_NewStatus();
    Scale* scale = malloc(sizeof *scale);
    TF_OpKernelConstruction_GetAttrFloat(construction, "factor", &scale->factor, result);
    if (TF_GetCode(result) == TF_OK && scale->factor == 0) {
        TF_SetStatus(result, TF_INVALID_ARGUMENT, "a factor of 0");
    }
    if (TF_GetCode(result) != TF_OK) TF_OpKernelConstruction_Failure(construction, result);
    ++n_made;
    TF_DeleteStatus(result);
    return scale;
}

static void delete_scale(void* kernel) {
    ++n_deleted;
    free(kernel);
}

static void compute_scale(void* kernel, TF_OpKernelContext* context) {
    TF_Status* result = TF_NewStatus();
    TF_Tensor *input = NULL, *output = NULL;
    TF_GetInput(context, 0, &input, result);
    int64_t dims[4];
    int rank = TF_NumDims(input);
    for (int i = 0; i < rank; ++i) dims[i] = TF_Dim(input, i);
    if (rank > 1) TF_SetStatus(result, TF_UNIMPLEMENTED, "only vectors");
    if (TF_GetCode(result) == TF_OK) {
        output = TF_AllocateOutput(context, 0, TF_ExpectedOutputDataType(context, 0), dims, rank,
                                   TF_TensorByteSize(input), result);
    }
    if (output) {
        const float* from = TF_TensorData(input);
        float* to = TF_TensorData(output);
        for (int64_t i = 0; i < TF_TensorElementCount(input); ++i) to[i] = from[i] * ((Scale*)kernel)->factor;
    }
    if (TF_GetCode(result) != TF_OK) TF_OpKernelContext_Failure(context, result);
    TF_DeleteTensor(output);
    TF_DeleteTensor(input);
    TF_DeleteStatus(result);
}

static void add_kernel(const char* what, TF_KernelBuilder* builder, TF_DataType type) {
    if (type) {
        TF_KernelBuilder_TypeConstraint(builder, "T", type, fresh(status));
        print_status(what, status);
    }
    TF_RegisterKernelBuilder(what, builder, fresh(status));
    print_status(what, status);
}

static TF_Output scale_node(const char* name, TF_Output x, float factor) {
    TF_OperationDescription* description = TF_NewOperation(graph, "CapiScale", name);
    TF_AddInput(description, x);
    TF_SetAttrFloat(description, "factor", factor);
    return finish(description);
}

static void kernels(void) {
    define("CapiScale", LIST("T: {float, double}", "factor: float = 2"), LIST("x: T"), LIST("y: T"), same_shape);
    TF_KernelBuilder* builder = TF_NewKernelBuilder("CapiScale", "CPU", make_scale, compute_scale, delete_scale);
    add_kernel("CapiScale", builder, TF_FLOAT);
    TF_DeleteKernelBuilder(TF_NewKernelBuilder("CapiScale", "CPU", make_scale, compute_scale, delete_scale));
    const float values[] = {1, 2, 3};
    TF_Output x = placeholder(graph, "x", TF_FLOAT), y = scale_node("y", x, 3);
    run_and_print("3 x", session, x, float_vector(3, values), y, NULL);
    run_and_print("again", session, x, float_scalar(5), y, NULL);
    printf("%d made\n", n_made);
    const int64_t dims[] = {1, 3};
    run_and_print("a matrix", session, x, tensor_of(TF_FLOAT, 2, dims, values), y, NULL);
    run_and_print("0 x", session, x, float_scalar(5), scale_node("zero", x, 0), NULL);
    TF_Output d = placeholder(graph, "d", TF_DOUBLE);
    const double one = 1;
    TF_Output doubled = scale_node("doubled", d, 2);
    TF_Tensor *feed = tensor_of(TF_DOUBLE, 0, NULL, &one), *result = NULL;
    TF_SessionRun(session, NULL, &d, &feed, 1, &doubled, &result, 1, NULL, 0, NULL, fresh(status));
    print_code("a double", status); /* the text lists kernels in its own way */
    TF_DeleteTensor(feed);
    TF_Buffer* listed = TF_GetRegisteredKernelsForOp("CapiScale", fresh(status));
    print_status("listed", status);
    print_bytes(listed->data, listed->length);
    printf("\n");
    TF_DeleteBuffer(listed);
    delete_session(session);
    session = new_session(graph);
    printf("all deleted with the session: %d\n", n_made == n_deleted);
}

static void* make_attrs(TF_OpKernelConstruction* c) {
    TF_Status* result = TF_NewStatus();
    TF_StringView name = TF_OpKernelConstruction_GetName(c);
    printf("  name %.*s\n", (int)name.len, name.data);
    int32_t i32 = 0, i32s[4] = {0}, size = 0, total = 0;
    int64_t i64 = 0, i64s[4] = {0};
    float f = 0, fs[4] = {0};
    unsigned char b = 9, bs[4] = {9, 9, 9, 9};
    TF_DataType t = 0, ts[4] = {0};
    char s[16] = "...............", storage[32];
    char* strings[4] = {NULL};
    size_t lengths[4] = {0};
    TF_OpKernelConstruction_GetAttrInt32(c, "i", &i32, result);
    TF_OpKernelConstruction_GetAttrInt64(c, "i", &i64, result);
    TF_OpKernelConstruction_GetAttrFloat(c, "f", &f, result);
    TF_OpKernelConstruction_GetAttrBool(c, "b", &b, result);
    TF_OpKernelConstruction_GetAttrType(c, "t", &t, result);
    TF_OpKernelConstruction_GetAttrString(c, "s", s, 4, result);
    printf("  %d %lld %g %d %d %.15s, code %d\n", i32, (long long)i64, f, b, (int)t, s, (int)TF_GetCode(result));
    TF_OpKernelConstruction_GetAttrInt32List(c, "is", i32s, 4, fresh(result));
    TF_OpKernelConstruction_GetAttrInt64List(c, "is", i64s, 4, result);
    TF_OpKernelConstruction_GetAttrFloatList(c, "fs", fs, 4, result);
    TF_OpKernelConstruction_GetAttrBoolList(c, "bs", bs, 4, result);
    TF_OpKernelConstruction_GetAttrTypeList(c, "ts", ts, 4, result);
    TF_OpKernelConstruction_GetAttrStringList(c, "ss", strings, lengths, 4, storage, sizeof storage, result);
    printf("  %d %d %lld %lld %g %g %d %d %d %d, code %d\n", i32s[0], i32s[1], (long long)i64s[0], (long long)i64s[1],
           fs[0], fs[1], bs[0], bs[1], (int)ts[0], (int)ts[1], (int)TF_GetCode(result));
    for (int i = 0; i < 2; ++i) printf("  %.*s\n", (int)lengths[i], strings[i] ? strings[i] : "");
    static const char* const NAMES[] = {"i", "s", "is", "ss", "shape", "none"};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) {
        TF_OpKernelConstruction_GetAttrSize(c, NAMES[i], &size, &total, fresh(result));
        printf("  %s: code %d", NAMES[i], (int)TF_GetCode(result));
        if (TF_GetCode(result) == TF_OK) printf(", %d, %d", size, total);
        printf(", has it %d\n", TF_OpKernelConstruction_HasAttr(c, NAMES[i], fresh(result)));
    }
    TF_OpKernelConstruction_GetAttrInt32(c, "s", &i32, fresh(result));
    print_status("  a string as int", result);
    TF_OpKernelConstruction_GetAttrInt32(c, "none", &i32, fresh(result));
    print_code("  none", result);
    TF_Tensor* tensor = NULL;
    TF_OpKernelConstruction_GetAttrTensor(c, "tensor", &tensor, fresh(result));
    print_status("  tensor", result);
    print_tensor("  tensor", tensor);
    TF_DeleteTensor(tensor);
    TF_DeleteStatus(result);
    return NULL;
}

static void compute_nothing(void* kernel, TF_OpKernelContext* context) {
    printf("  kernel %s\n", kernel ? "set" : "NULL");
    TF_StringView name = TF_GetOpKernelName(context);
    printf("  %.*s: %d inputs, %d outputs\n", (int)name.len, name.data, TF_NumInputs(context), TF_NumOutputs(context));
}

static void attributes_of_a_kernel(void) {
    define("CapiManyAttrs",
           LIST("i: int = -7", "f: float = 1.5", "b: bool = true", "t: type = DT_INT8", "s: string = 'texts'",
                "is: list(int) = [3, 4]", "fs: list(float) = [0.5, 2.5]", "bs: list(bool) = [true, false]",
                "ts: list(type) = [DT_FLOAT, DT_STRING]", "ss: list(string) = ['one', 'three']",
                "shape: shape = { dim { size: 2 } dim { size: 3 } }",
                "tensor: tensor = { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 5 int_val: 6 }"),
           NONE, NONE, all_unknown);
    add_kernel("CapiManyAttrs", TF_NewKernelBuilder("CapiManyAttrs", "CPU", make_attrs, compute_nothing, NULL), 0);
    TF_Output node = finish(TF_NewOperation(graph, "CapiManyAttrs", "node"));
    run_and_print("run", session, NOTHING, NULL, NOTHING, node.oper);
}

static void compute_context(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    TF_Status* result = TF_NewStatus();
    printf("  types");
    for (int i = 0; i < TF_NumInputs(context); ++i) printf(" %d", (int)TF_InputDatatype(context, i));
    printf(", out %d\n", (int)TF_ExpectedOutputDataType(context, 0));
    TF_StringView device = TF_GetDeviceName(context), container = TF_GetResourceMgrDefaultContainerName(context);
    printf("  on %.*s, container %.*s\n", (int)device.len, device.data, (int)container.len, container.data);
    printf("  host memory %d", TF_IsHostMemoryInput(context, 0, result));
    printf(" %d\n", TF_IsHostMemoryOutput(context, 0, result));
    printf("  step above 0: %d, frame %llu, turn %lld\n", TF_StepId(context) > 0,
           (unsigned long long)TF_GetFrameId(context), (long long)TF_GetIterId(context));
    TF_Tensor* input = NULL;
    TF_GetInput(context, 9, &input, fresh(result));
    print_code("  input 9", result);
    TF_InputRange_Args range = {TF_InputRange_Args_STRUCT_SIZE, NULL, -1, -1, fresh(result)};
    TF_InputRange(context, "rest", &range);
    printf("  rest from %d to %d, code %d\n", range.start, range.stop, (int)TF_GetCode(result));
    TF_InputRange(context, "none", &range);
    print_code("  none", result);
    const int64_t dims[] = {2};
    const int candidates[] = {0};
    int forwarded = 77;
    TF_Tensor* output =
        TF_ForwardInputOrAllocateOutput(context, candidates, 1, 0, dims, 1, &forwarded, fresh(result));
    print_status("  forward", result);
    if (output) {
        float* values = TF_TensorData(output);
        values[0] = 10;
        values[1] = 20;
    }
    TF_DeleteTensor(output);
    TF_AllocatorAttributes attributes = {TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE, 1};
    TF_Tensor* temporary = TF_AllocateTemp(context, TF_INT32, dims, 1, &attributes, fresh(result));
    print_status("  temporary", result);
    if (temporary) printf("  %zu bytes\n", TF_TensorByteSize(temporary));
    TF_DeleteTensor(temporary);
    TF_Tensor* second = float_scalar(4);
    TF_SetOutput(context, 1, second, fresh(result));
    print_status("  set output", result);
    TF_SetOutput(context, 5, second, fresh(result));
    print_code("  output 5", result);
    TF_DeleteTensor(second);
    TF_DeleteStatus(result);
}

static void context_of_a_kernel(void) {
    define("CapiContext", LIST("n: int"), LIST("x: float", "rest: n * int32"), LIST("y: float", "z: float"),
           all_unknown);
    add_kernel("CapiContext", TF_NewKernelBuilder("CapiContext", "CPU", NULL, compute_context, NULL), 0);
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    const TF_Output rest[] = {int_constant(graph, "one", 1), int_constant(graph, "two", 2)};
    TF_OperationDescription* description = TF_NewOperation(graph, "CapiContext", "node");
    TF_AddInput(description, x);
    TF_AddInputList(description, rest, 2);
    TF_Output y = finish(description), outputs[] = {y, {y.oper, 1}};
    TF_Tensor* feed = float_vector(2, (const float[]){1, 2});
    run("run", 1, &x, &feed, 2, outputs, 0, NULL);
    print_tensor("the feed is as it was", feed);
    TF_DeleteTensor(feed);
}

static void give_one_to(void* kernel, TF_OpKernelContext* context);

static void compute_later(void* kernel, TF_OpKernelContext* context, TF_AsyncOpKernelDoneCallback* done) {
    (void)kernel;
    TF_Status* result = TF_NewStatus();
    TF_Tensor* output = TF_AllocateOutput(context, 0, TF_FLOAT, NULL, 0, sizeof(float), result);
    if (output) *(float*)TF_TensorData(output) = 42;
    TF_DeleteTensor(output);
    TF_DeleteStatus(result);
    TF_RunAsyncOpKernelDoneCallback(done);
}

static void asynchronous(void) {
    define("CapiLater", NONE, NONE, LIST("y: float"), all_unknown);
    add_kernel("CapiLater", TF_NewAsyncKernelBuilder("CapiLater", "CPU", NULL, compute_later, NULL), 0);
    fetch("later", finish(TF_NewOperation(graph, "CapiLater", "later")));
}

static const char KEY[] =
    "/job:localhost/replica:0/task:0/device:CPU:0;0000000000000001;/job:localhost/replica:0/task:0/device:CPU:0;edge;0:0";

static void received(void* context, TF_RendezvousDoneCallback_Params* params) {
    TF_OpKernelContext* kernel_context = context;
    print_status("  received", params->status);
    printf("  dead %d, a tensor %d\n", params->is_dead, params->tensor != NULL);
    if (!params->tensor) return;
    TF_Status* result = TF_NewStatus();
    TF_SetOutput(kernel_context, 0, params->tensor, result);
    print_status("  passed on", result);
    TF_DeleteStatus(result);
}

/* Leaves a tensor where the kernels of the step meet, and takes it from there. */
static void compute_meeting(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    TF_RendezvousThunk place = TF_GetRendezvous(context);
    printf("  a place %d, functions %d %d %d\n", place.rendezvous != NULL, place.send_func != NULL,
           place.async_recv_func != NULL, place.start_abort_func != NULL);
    char key_text[sizeof(KEY)];
    memcpy(key_text, KEY, sizeof(KEY));
    TF_RendezvousParsedKey key = {key_text, sizeof(KEY) - 1};
    TF_RendezvousArgsStruct arguments = {NULL, {0, 0}, NULL};
    TF_Tensor* sent = float_scalar(6);
    TF_Status* result = TF_NewStatus();
    TF_RendezvousSend_Params send = {&key, &arguments, sent, false, result};
    place.send_func(place.rendezvous, &send);
    print_status("  sent", result);
    TF_RendezvousAsyncRecv_Params receive = {place.rendezvous, &key, &arguments, {context, received}};
    place.async_recv_func(place.rendezvous, &receive);
    TF_DeleteTensor(sent);
    TF_DeleteStatus(result);
}

static void rendezvous(void) {
    define("CapiMeeting", NONE, NONE, LIST("y: float"), all_unknown);
    add_kernel("CapiMeeting", TF_NewKernelBuilder("CapiMeeting", "CPU", NULL, compute_meeting, NULL), 0);
    fetch("meeting", finish(TF_NewOperation(graph, "CapiMeeting", "node")));
}

/* What a kernel learns of its session: a configuration, and the functions of the graph. */
static void compute_session(void* kernel, TF_OpKernelContext* context) {
    TF_Status* result = TF_NewStatus();
    TF_Buffer *config = TF_NewBuffer(), *library = TF_NewBuffer();
    TF_GetSerializedConfigProto(context, config, result);
    print_status("  configuration", result);
    printf("  names the threads: %d\n", config->length >= 2 && memchr(config->data, 7, config->length) != NULL);
    TF_GetSerializedConfigProto(context, config, fresh(result));
    print_code("  into a buffer that is full", result);
    TF_GetSerializedFunctionDefLibrary(context, library, fresh(result));
    print_status("  functions", result);
    printf("  some: %d\n", library->length > 20);
    TF_DeleteBuffer(config);
    TF_DeleteBuffer(library);
    TF_DeleteStatus(result);
    give_one_to(kernel, context);
}

static void session_of_a_kernel(void) {
    define("CapiSession", NONE, NONE, LIST("y: float"), all_unknown);
    add_kernel("CapiSession", TF_NewKernelBuilder("CapiSession", "CPU", NULL, compute_session, NULL), 0);
    TF_Graph* body = TF_NewGraph();
    TF_Output x = placeholder(body, "x", TF_FLOAT), negated = unary(body, "Neg", "negated", x);
    TF_Function* function =
        TF_GraphToFunction(body, "negate", 0, -1, NULL, 1, &x, 1, &negated, NULL, NULL, NULL, fresh(status));
    TF_GraphCopyFunction(graph, function, NULL, fresh(status));
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
    TF_Output y = finish(TF_NewOperation(graph, "CapiSession", "node"));
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, "\x10\x07", 2, fresh(status)); /* intra_op_parallelism_threads: 7 */
    TF_Session* own = TF_NewSession(graph, options, fresh(status));
    run_and_print("run", own, NOTHING, NULL, y, NULL);
    delete_session(own);
    TF_DeleteSessionOptions(options);
}

static void give_one(void* kernel, TF_OpKernelContext* context) { give_one_to(kernel, context); }

static void give_one_to(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    TF_Status* result = TF_NewStatus();
    TF_Tensor* one = float_scalar(1);
    TF_SetOutput(context, 0, one, result);
    TF_DeleteTensor(one);
    TF_DeleteStatus(result);
}

static void give_two(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    TF_Status* result = TF_NewStatus();
    TF_Tensor* two = float_scalar(2);
    TF_SetOutput(context, 0, two, result);
    TF_DeleteTensor(two);
    TF_DeleteStatus(result);
}

static void priorities_and_labels(void) {
    define("CapiChoice", NONE, NONE, LIST("y: float"), all_unknown);
    TF_KernelBuilder* low = TF_NewKernelBuilder("CapiChoice", "CPU", NULL, give_one, NULL);
    TF_KernelBuilder* high = TF_NewKernelBuilder("CapiChoice", "CPU", NULL, give_two, NULL);
    TF_KernelBuilder_Priority(low, 1);
    TF_KernelBuilder_Priority(high, 2);
    add_kernel("high", high, 0);
    add_kernel("low", low, 0);
    fetch("chosen", finish(TF_NewOperation(graph, "CapiChoice", "chosen")));
    define("CapiLabel", NONE, NONE, LIST("y: float"), all_unknown);
    TF_KernelBuilder* plain = TF_NewKernelBuilder("CapiLabel", "CPU", NULL, give_one, NULL);
    TF_KernelBuilder* special = TF_NewKernelBuilder("CapiLabel", "CPU", NULL, give_two, NULL);
    TF_KernelBuilder_Label(special, "special");
    add_kernel("plain", plain, 0);
    add_kernel("special", special, 0);
    fetch("plain", finish(TF_NewOperation(graph, "CapiLabel", "plain")));
    TF_OperationDescription* description = TF_NewOperation(graph, "CapiLabel", "special");
    TF_SetAttrString(description, "_kernel", "special", 7);
    fetch("special", finish(description));
    add_kernel("a kernel before its op", TF_NewKernelBuilder("CapiLate", "CPU", NULL, give_one, NULL), 0);
    define("CapiLate", NONE, NONE, LIST("y: float"), all_unknown);
    fetch("late", finish(TF_NewOperation(graph, "CapiLate", "late")));
}

IN_NEW_SESSION(definitions)
IN_NEW_SESSION(wrong_definitions)
IN_NEW_SESSION(one_op_twice)
IN_NEW_SESSION(without_a_shape_function)
IN_NEW_SESSION(shape_functions)
IN_NEW_SESSION(kernels)
IN_NEW_SESSION(attributes_of_a_kernel)
IN_NEW_SESSION(context_of_a_kernel)
IN_NEW_SESSION(asynchronous)
IN_NEW_SESSION(session_of_a_kernel)
IN_NEW_SESSION(rendezvous)
IN_NEW_SESSION(priorities_and_labels)

static const Case CASES[] = {
    CASE(definitions),
    CASE(wrong_definitions),
    CASE(one_op_twice),
    CASE(without_a_shape_function),
    CASE(shape_functions),
    CASE(kernels),
    CASE(attributes_of_a_kernel),
    CASE(context_of_a_kernel),
    CASE(asynchronous),
    CASE(session_of_a_kernel),
    CASE(rendezvous),
    CASE(priorities_and_labels),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
