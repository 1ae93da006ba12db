/* Arguments for the calls that tools/null_calls.py writes: new objects for each call, which runs in a process of its own and
 * so frees nothing. */
#ifndef CAPI_TESTS_NULL_VALUES_H_
#define CAPI_TESTS_NULL_VALUES_H_

#include <stdint.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api.h>
#include <tensorflow/c/eager/c_api_unified_experimental.h>
#include <tensorflow/c/env.h>
#include <tensorflow/c/experimental/grappler/grappler.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>

#ifdef WITH_AOT
#include <ferroflow/aot.h>
#endif

typedef struct {
    const char* function;
    const char* nulls; /* the places of the parameters that are NULL */
    void (*call)(void);
    void (*where)(void (*call)(void)); /* runs the call where its objects live */
} NullCall;

extern const NullCall NULL_CALLS[];
extern const int N_NULL_CALLS;

/* Valid inside the functions below, which run a call in a kernel, while a kernel is made, and in a shape function. */
extern TF_OpKernelContext* kernel_context;
extern TF_OpKernelConstruction* kernel_construction;
extern TF_ShapeInferenceContext* shape_context;
void in_place(void (*call)(void));
void in_kernel(void (*call)(void));
void in_construction(void (*call)(void));
void in_shape_function(void (*call)(void));

/* A function that takes anything and returns 0. */
void* do_nothing(void);
/* Memory that may be written, all zero; as elements of any type they are 0 and NULL. */
void* room(void);
/* The same, with a pointer at its start. */
void* room_of(const void* pointer);
/* Numbers of any size, the first 1 and the others 0. */
void* ones(void);
/* An array of arrays of those. */
void* arrays(void);
/* An array of texts. */
void* texts(void);

TF_Status* made_status(void);
TF_Graph* made_graph(void);
TF_Operation* made_operation(void);
TF_Output made_output(void);
TF_Output* made_outputs(void);
TF_Input made_input(void);
TF_OperationDescription* made_description(void);
TF_Tensor* made_tensor(void);
TF_Buffer* made_buffer(void);
TF_Session* made_session(void);
TF_DeprecatedSession* made_deprecated_session(void);
TF_ImportGraphDefResults* made_import_results(void);
TF_Function* made_function(void);
TF_WhileParams* made_loop(void);
TF_DeviceList* made_devices(void);
TF_ApiDefMap* made_api_definitions(void);
TF_Library* made_library(void);
TF_CheckpointReader* made_reader(void);
TF_WritableFileHandle* made_file(void);
TF_Thread* made_thread(void);
TF_TString* made_string(void);
TF_KernelBuilder* made_kernel_builder(void);
TF_OpDefinitionBuilder* made_op_builder(void);
TF_FunctionLibraryDefinition* made_function_library(void);
TFE_Context* made_context(void);
TFE_TensorHandle* made_handle(void);
TFE_Op* made_eager_op(void);
TFE_TensorDebugInfo* made_debug_info(void);
TF_AbstractOp* made_abstract_op(void);
TF_AbstractFunction* made_abstract_function(void);
#ifdef WITH_AOT
/* A program of no version, and a model of it, which cannot run. */
const FF_AotProgram* made_program(void);
FF_AotModel* made_model(void);
#endif

#endif
