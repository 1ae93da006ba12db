/* The objects that null_values.h promises. One graph, one session and one eager context for each process. */
#include "null_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/proto.h"

TF_OpKernelContext* kernel_context;
TF_OpKernelConstruction* kernel_construction;
TF_ShapeInferenceContext* shape_context;

void* do_nothing(void) { return NULL; }
void* room(void) { return calloc(1, 1 << 12); }

void* room_of(const void* pointer) {
    const void** start = room();
    start[0] = pointer;
    return start;
}


void* ones(void) {
    char* numbers = room();
    numbers[0] = 1;
    return numbers;
}

void* arrays(void) { return room_of(ones()); }
void* texts(void) { return room_of("x"); }

TF_Status* made_status(void) { return TF_NewStatus(); }

TF_Graph* made_graph(void) {
    static TF_Graph* graph;
    if (graph) return graph;
    graph = TF_NewGraph();
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    binary(graph, "AddV2", "sum", x, float_constant(graph, "one", 1));
    return graph;
}

TF_Operation* made_operation(void) { return TF_GraphOperationByName(made_graph(), "sum"); }
TF_Output made_output(void) { return (TF_Output){made_operation(), 0}; }
TF_Input made_input(void) { return (TF_Input){made_operation(), 0}; }

TF_Output* made_outputs(void) {
    TF_Output* outputs = room();
    outputs[0] = made_output();
    return outputs;
}

TF_OperationDescription* made_description(void) {
    static int number;
    char name[16] = {'n', (char)('a' + number / 26 % 26), (char)('a' + number % 26)};
    ++number;
    return TF_NewOperation(made_graph(), "Identity", strdup(name));
}

TF_Tensor* made_tensor(void) { return float_scalar(1); }
TF_Buffer* made_buffer(void) { return TF_NewBuffer(); }

TF_Session* made_session(void) {
    static TF_Session* session;
    if (!session) session = new_session(made_graph());
    return session;
}

TF_DeprecatedSession* made_deprecated_session(void) {
    return TF_NewDeprecatedSession(TF_NewSessionOptions(), made_status());
}

TF_ImportGraphDefResults* made_import_results(void) {
    TF_Buffer* def = exported(made_graph());
    return TF_GraphImportGraphDefWithResults(TF_NewGraph(), def, TF_NewImportGraphDefOptions(), made_status());
}

TF_Function* made_function(void) {
    TF_Output x = {TF_GraphOperationByName(made_graph(), "x"), 0}, y = made_output();
    return TF_GraphToFunction(made_graph(), "function", 0, -1, NULL, 1, &x, 1, &y, NULL, NULL, NULL, made_status());
}

TF_WhileParams* made_loop(void) {
    TF_Output x = {TF_GraphOperationByName(made_graph(), "x"), 0};
    TF_WhileParams* loop = malloc(sizeof(TF_WhileParams));
    *loop = TF_NewWhile(made_graph(), &x, 1, made_status());
    loop->name = "loop";
    return loop;
}

TF_DeviceList* made_devices(void) { return TF_SessionListDevices(made_session(), made_status()); }
TF_ApiDefMap* made_api_definitions(void) { return TF_NewApiDefMap(TF_GetAllOpList(), made_status()); }
TF_Library* made_library(void) { return TF_LoadLibrary("libm.so.6", made_status()); }

TF_CheckpointReader* made_reader(void) {
    char prefix[4096];
    snprintf(prefix, sizeof(prefix), "%s/patterns_saved_model/variables/variables", data_folder());
    return TF_NewCheckpointReader(prefix, made_status());
}

TF_WritableFileHandle* made_file(void) {
    TF_WritableFileHandle* file = NULL;
    TF_NewWritableFile("null_calls.tmp", &file, made_status());
    return file;
}

static void in_thread(void* argument) { (void)argument; }

TF_Thread* made_thread(void) {
    TF_ThreadOptions options;
    TF_DefaultThreadOptions(&options);
    return TF_StartThread(&options, "null_calls", in_thread, NULL);
}

TF_TString* made_string(void) {
    TF_TString* text = room();
    TF_StringInit(text);
    TF_StringCopy(text, "some text", 9);
    return text;
}

TF_KernelBuilder* made_kernel_builder(void) { return TF_NewKernelBuilder("Identity", "CPU", NULL, NULL, NULL); }
TF_OpDefinitionBuilder* made_op_builder(void) { return TF_NewOpDefinitionBuilder("NullCallsNew"); }

TF_FunctionLibraryDefinition* made_function_library(void) {
    return TF_NewFunctionLibraryDefinition(exported(made_graph()), made_status());
}

TFE_Context* made_context(void) {
    static TFE_Context* context;
    if (!context) context = TFE_NewContext(TFE_NewContextOptions(), made_status());
    return context;
}

TFE_TensorHandle* made_handle(void) { return TFE_NewTensorHandle(made_tensor(), made_status()); }
TFE_Op* made_eager_op(void) { return TFE_NewOp(made_context(), "AddV2", made_status()); }
TFE_TensorDebugInfo* made_debug_info(void) { return TFE_TensorHandleTensorDebugInfo(made_handle(), made_status()); }

void in_place(void (*call)(void)) { call(); }

/* The call that the functions below make, where it is to be made. */
static void (*to_call)(void);
static int made_in;

enum { SHAPE_FUNCTION = 1, CONSTRUCTION = 2, KERNEL = 3 };

static void shape_function(TF_ShapeInferenceContext* context, TF_Status* status) {
    shape_context = context;
    if (made_in == SHAPE_FUNCTION) to_call();
    TF_ShapeInferenceContextSetUnknownShape(context, status);
}

static void* create(TF_OpKernelConstruction* construction) {
    kernel_construction = construction;
    if (made_in == CONSTRUCTION) to_call();
    return NULL;
}

TF_AbstractOp* made_abstract_op(void) {
    TF_AbstractOp* op = TF_NewAbstractOp(TF_NewEagerExecutionContext(TFE_NewContextOptions(), made_status()));
    TF_AbstractOpSetOpType(op, "Identity", made_status());
    return op;
}

/* A function without parameters and results. */
TF_AbstractFunction* made_abstract_function(void) {
    TF_SetTracingImplementation("graphdef", made_status());
    TF_ExecutionContext* traced = TF_CreateFunction("traced", made_status());
    return TF_FinalizeFunction(traced, TF_NewOutputList(), made_status());
}

#ifdef WITH_AOT
const FF_AotProgram* made_program(void) {
    static const FF_AotProgram program;
    return &program;
}

FF_AotModel* made_model(void) { return FF_AotModelNew(made_program(), NULL); }
#endif

static void compute(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    kernel_context = context;
    if (made_in == KERNEL) to_call();
}

/* Defines an op, makes a node of it and runs it. */
static void run_in(int place, void (*call)(void)) {
    to_call = call;
    made_in = place;
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("NullCalls");
    TF_OpDefinitionBuilderAddAttr(op, "x: int = 1");
    TF_OpDefinitionBuilderAddInput(op, "a: float");
    TF_OpDefinitionBuilderAddInput(op, "b: float");
    TF_OpDefinitionBuilderAddOutput(op, "c: float");
    TF_OpDefinitionBuilderAddOutput(op, "d: float");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shape_function);
    TF_RegisterOpDefinition(op, made_status());
    TF_RegisterKernelBuilder("NullCalls", TF_NewKernelBuilder("NullCalls", "CPU", create, compute, NULL),
                             made_status());
    TF_Graph* graph = made_graph();
    TF_Output one = {TF_GraphOperationByName(graph, "one"), 0}, node = binary(graph, "NullCalls", "node", one, one);
    TF_Tensor* result = NULL;
    if (node.oper)
        TF_SessionRun(made_session(), NULL, NULL, NULL, 0, &node, &result, 1, NULL, 0, NULL, made_status());
}

void in_kernel(void (*call)(void)) { run_in(KERNEL, call); }
void in_construction(void (*call)(void)) { run_in(CONSTRUCTION, call); }
void in_shape_function(void (*call)(void)) { run_in(SHAPE_FUNCTION, call); }
