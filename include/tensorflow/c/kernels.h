/* Kernels registered at run time. Any thread may call any function; which objects threads may share is said at each
 * type, and none may be in use when it is deleted. Text and arrays that are passed in belong to the caller and are
 * read during the call only, unless a comment says otherwise. A function that takes a TF_Status sets it on every
 * call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_KERNELS_H_
#define TENSORFLOW_C_KERNELS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/core/common_runtime/next_pluggable_device/c/tf_rendezvous_c_api.h"

/* What `struct_size` of TF_InputRange_Args is. */
#define TF_InputRange_Args_STRUCT_SIZE TF_OFFSET_OF_END(TF_InputRange_Args, status)

#ifdef __cplusplus
extern "C" {
#endif

/* A plug-in of kernels defines this function, in which it registers them. */
void TF_InitKernel(void);

#ifdef __cplusplus
}
#endif


/**
 * Says that an asynchronous kernel is done with a node. It is used once, on any thread.
 */
typedef struct TF_AsyncOpKernelDoneCallback TF_AsyncOpKernelDoneCallback;

/**
 * A kernel under construction. One thread at a time may use it.
 */
typedef struct TF_KernelBuilder TF_KernelBuilder;

/**
 * What a kernel sees of its node when it is made; valid during that call, on its thread.
 */
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;

/**
 * What a kernel sees of its node in a step; valid during that call, or until an asynchronous kernel is done. One thread at a
 * time may use it.
 */
typedef struct TF_OpKernelContext TF_OpKernelContext;

/**
 * Makes the state of a kernel for one node.
 */
typedef void *(*CreateFunction)(struct TF_OpKernelConstruction *ctx);

/**
 * Computes.
 */
typedef void (*ComputeFunction)(void *kernel, struct TF_OpKernelContext *ctx);

/**
 * Frees the state of a kernel.
 */
typedef void (*DeleteFunction)(void *kernel);

/**
 * Starts to compute; the callback says when it is done.
 */
typedef void (*ComputeAsyncFunction)(void *kernel,
                                     TF_OpKernelContext *ctx,
                                     TF_AsyncOpKernelDoneCallback *done);

/**
 * Which inputs an input argument of the op has.
 */
typedef struct TF_InputRange_Args {
  /**
   * `TF_InputRange_Args_STRUCT_SIZE`.
   */
  size_t struct_size;
  /**
   * Not used.
   */
  void *priv;
  /**
   * Set to the first input.
   */
  int start;
  /**
   * Set to the one after the last.
   */
  int stop;
  /**
   * Set to the outcome.
   */
  TF_Status *status;
} TF_InputRange_Args;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Starts a kernel for an op on a type of device (`CPU`).
 *
 * For each node that uses it, `create_func` is called once, unless it is NULL, and what it returns is passed to the other
 * functions; `compute_func` is called in each step, by any thread, also by several at the same time; `delete_func` is called
 * at the end, unless it is NULL. Contexts are valid during the calls only.
 *
 * `TF_RegisterKernelBuilder` or `TF_DeleteKernelBuilder` frees the builder. NULL for NULL names.
 */
TF_CAPI_EXPORT extern
TF_KernelBuilder *TF_NewKernelBuilder(const char *op_name,
                                             const char *device_name,
                                             CreateFunction create_func,
                                             ComputeFunction compute_func,
                                             DeleteFunction delete_func);

/**
 * As `TF_NewKernelBuilder`, for a kernel that may return before it is done: it calls
 * `TF_RunAsyncOpKernelDoneCallback` then, on any thread, and may use its context until it does.
 */
TF_CAPI_EXPORT extern
TF_KernelBuilder *TF_NewAsyncKernelBuilder(const char *op_name,
                                                  const char *device_name,
                                                  CreateFunction create_func,
                                                  ComputeAsyncFunction compute_async_func,
                                                  DeleteFunction delete_func);

/**
 * Says that an asynchronous kernel is done, and frees the callback. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback *done);

/**
 * Restricts the kernel to one more value of an attribute that is an element type.
 */
TF_CAPI_EXPORT extern
void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder *kernel_builder,
                                     const char *attr_name,
                                     TF_DataType dtype,
                                     TF_Status *status);

/**
 * Says that an input or output argument is in memory of the host also on another device. On a CPU all are.
 */
TF_CAPI_EXPORT extern void TF_KernelBuilder_HostMemory(TF_KernelBuilder *kernel_builder, const char *arg_name);

/**
 * Sets the priority: of the kernels that fit a node, the highest wins.
 */
TF_CAPI_EXPORT extern void TF_KernelBuilder_Priority(TF_KernelBuilder *kernel_builder, int32_t priority_number);

/**
 * Restricts the kernel to nodes whose attribute `_kernel` has this value.
 */
TF_CAPI_EXPORT extern void TF_KernelBuilder_Label(TF_KernelBuilder *kernel_builder, const char *label);

/**
 * Adds the kernel to those of this process and frees the builder, also on failure. The op may be added later.
 */
TF_CAPI_EXPORT extern
void TF_RegisterKernelBuilder(const char *kernel_name,
                              TF_KernelBuilder *builder,
                              TF_Status *status);

/**
 * As `TF_RegisterKernelBuilder`, with restrictions, label and priority from a `KernelDef` in serialized form that ends at
 * its first zero byte; NULL for those of the builder.
 */
TF_CAPI_EXPORT extern
void TF_RegisterKernelBuilderWithKernelDef(const char *serialized_kernel_def,
                                           const char *name,
                                           TF_KernelBuilder *builder,
                                           TF_Status *status);

/**
 * Frees a builder that is not registered; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteKernelBuilder(TF_KernelBuilder *builder);

/**
 * Reports that the kernel cannot be made.
 */
TF_CAPI_EXPORT extern void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction *ctx, TF_Status *status);

/**
 * The node as a serialized `NodeDef`. Free the buffer with `TF_DeleteBuffer`; NULL on an error.
 */
TF_CAPI_EXPORT extern
TF_Buffer *TF_OpKernelConstruction_GetNodeDef(TF_OpKernelConstruction *ctx,
                                              TF_Status *status);

/**
 * Gets the number of elements of a list (-1 for a single value) and its size in all, as `TF_AttrMetadata` counts them.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction *ctx,
                                         const char *attr_name,
                                         int32_t *list_size,
                                         int32_t *total_size,
                                         TF_Status *status);

/**
 * Gets an element type. NOT_FOUND when the attribute is not set, INVALID_ARGUMENT when it is of another kind; so for all
 * that follow.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrType(TF_OpKernelConstruction *ctx,
                                         const char *attr_name,
                                         TF_DataType *val,
                                         TF_Status *status);

/**
 * Gets an integer of 32 bits.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrInt32(TF_OpKernelConstruction *ctx,
                                          const char *attr_name,
                                          int32_t *val,
                                          TF_Status *status);

/**
 * Gets an integer.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrInt64(TF_OpKernelConstruction *ctx,
                                          const char *attr_name,
                                          int64_t *val,
                                          TF_Status *status);

/**
 * Gets a float.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction *ctx,
                                          const char *attr_name,
                                          float *val,
                                          TF_Status *status);

/**
 * Gets a truth value.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction *ctx,
                                         const char *attr_name,
                                         unsigned char *val,
                                         TF_Status *status);

/**
 * Writes the bytes of a string, `max_length` at most, without a zero byte at the end.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction *ctx,
                                           const char *attr_name,
                                           char *val,
                                           size_t max_length,
                                           TF_Status *status);

/**
 * Gets a tensor, which the caller owns.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrTensor(TF_OpKernelConstruction *ctx,
                                           const char *attr_name,
                                           TF_Tensor**val,
                                           TF_Status *status);

/**
 * Writes element types, `max_vals` at most.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrTypeList(TF_OpKernelConstruction *ctx,
                                             const char *attr_name,
                                             TF_DataType *vals,
                                             int max_vals,
                                             TF_Status *status);

/**
 * Writes integers of 32 bits, `max_vals` at most.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrInt32List(TF_OpKernelConstruction *ctx,
                                              const char *attr_name,
                                              int32_t *vals,
                                              int max_vals,
                                              TF_Status *status);

/**
 * Writes integers, `max_vals` at most.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrInt64List(TF_OpKernelConstruction *ctx,
                                              const char *attr_name,
                                              int64_t *vals,
                                              int max_vals,
                                              TF_Status *status);

/**
 * Writes floats, `max_vals` at most.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrFloatList(TF_OpKernelConstruction *ctx,
                                              const char *attr_name,
                                              float *vals,
                                              int max_vals,
                                              TF_Status *status);

/**
 * Writes truth values, `max_vals` at most.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrBoolList(TF_OpKernelConstruction *ctx,
                                             const char *attr_name,
                                             unsigned char *vals,
                                             int max_vals,
                                             TF_Status *status);

/**
 * Writes addresses and lengths of `max_values` strings at most; their bytes go one after the other into `storage`, which
 * has room for `storage_size` bytes. INVALID_ARGUMENT when it has too little.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrStringList(TF_OpKernelConstruction *ctx,
                                               const char *attr_name,
                                               char**values,
                                               size_t *lengths,
                                               int max_values,
                                               void *storage,
                                               size_t storage_size,
                                               TF_Status *status);

/**
 * Writes tensors, `max_values` at most, which the caller owns.
 */
TF_CAPI_EXPORT extern
void TF_OpKernelConstruction_GetAttrTensorList(TF_OpKernelConstruction *ctx,
                                               const char *attr_name,
                                               TF_Tensor**vals,
                                               int max_values,
                                               TF_Status *status);

/**
 * A function as a serialized `NameAttrList`. Free the buffer with `TF_DeleteBuffer`; NULL on an error.
 */
TF_CAPI_EXPORT extern
TF_Buffer *TF_OpKernelConstruction_GetAttrFunction(TF_OpKernelConstruction *ctx,
                                                   const char *attr_name,
                                                   TF_Status *status);

/**
 * Whether the node has an attribute of this name.
 */
TF_CAPI_EXPORT extern
bool TF_OpKernelConstruction_HasAttr(TF_OpKernelConstruction *ctx,
                                     const char *attr_name,
                                     TF_Status *status);

/**
 * The name of the node; valid as long as the kernel. Empty for NULL.
 */
TF_CAPI_EXPORT extern TF_StringView TF_OpKernelConstruction_GetName(TF_OpKernelConstruction *ctx);

/**
 * The number of inputs; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TF_NumInputs(TF_OpKernelContext *ctx);

/**
 * The number of outputs; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TF_NumOutputs(TF_OpKernelContext *ctx);

/**
 * Gets an input, which the caller owns and must not change. OUT_OF_RANGE when there is no such input.
 */
TF_CAPI_EXPORT extern
void TF_GetInput(TF_OpKernelContext *ctx,
                 int i,
                 TF_Tensor**tensor,
                 TF_Status *status);

/**
 * Finds the inputs of the input argument with this name. INVALID_ARGUMENT when there is none.
 */
TF_CAPI_EXPORT extern void TF_InputRange(TF_OpKernelContext *ctx, const char *name, TF_InputRange_Args *args);

/**
 * The element type of an input; 0 when there is no such input.
 */
TF_CAPI_EXPORT extern TF_DataType TF_InputDatatype(TF_OpKernelContext *ctx, int index);

/**
 * Sets an output; the tensor's memory is shared, and the caller keeps its handle. OUT_OF_RANGE when there is no such
 * output, INVALID_ARGUMENT for another type.
 */
TF_CAPI_EXPORT extern
void TF_SetOutput(TF_OpKernelContext *ctx,
                  int i,
                  const TF_Tensor *tensor,
                  TF_Status *status);

/**
 * The output that was set or allocated, which the caller owns and may write. NULL with OUT_OF_RANGE when there is no such
 * output; NULL when it is not set.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TF_GetMutableOutput(TF_OpKernelContext *ctx,
                               int i,
                               TF_Status *status);

/**
 * Reports that the kernel failed.
 */
TF_CAPI_EXPORT extern void TF_OpKernelContext_Failure(TF_OpKernelContext *ctx, TF_Status *status);

/**
 * The element type that an output must have; 0 when there is no such output.
 */
TF_CAPI_EXPORT extern TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext *ctx, int i);

/**
 * Whether an input of a kernel of another device is in memory of the host, because the kernel asked for it. On a CPU there
 * is no difference, and so it is false. OUT_OF_RANGE when there is no such input.
 */
TF_CAPI_EXPORT extern
bool TF_IsHostMemoryInput(TF_OpKernelContext *ctx,
                          int i,
                          TF_Status *status);

/**
 * Whether an output is in memory of the host, likewise. OUT_OF_RANGE when there is no such output.
 */
TF_CAPI_EXPORT extern bool TF_IsHostMemoryOutput(TF_OpKernelContext *ctx, int i, TF_Status *status);

/**
 * Writes the handle in a resource input as a serialized `ResourceHandleProto` into an empty buffer.
 */
TF_CAPI_EXPORT extern
void TF_GetSerializedResourceHandleProto(TF_OpKernelContext *ctx,
                                         int i,
                                         TF_Buffer *serialized_resource_handle_proto,
                                         TF_Status *status);

/**
 * Allocates an output, which the caller fills; it owns the handle. `len` is the number of bytes, at least what type and
 * shape need. NULL with OUT_OF_RANGE when there is no such output, INVALID_ARGUMENT for another type or too few bytes,
 * RESOURCE_EXHAUSTED when memory is out.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TF_AllocateOutput(TF_OpKernelContext *context,
                             int index,
                             TF_DataType dtype,
                             const int64_t *dims,
                             int num_dims,
                             size_t len,
                             TF_Status *status);

/**
 * Uses the memory of the first of these inputs that nobody else needs and that fits the output, with its values in it;
 * otherwise allocates the output. `*forwarded_input`, unless that is NULL, is the input or -1. The caller owns the handle
 * and fills the memory.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TF_ForwardInputOrAllocateOutput(TF_OpKernelContext *context,
                                           const int *candidate_input_indices,
                                           int num_candidate_input_indices,
                                           int output_index,
                                           const int64_t *output_dims,
                                           int output_num_dims,
                                           int *forwarded_input,
                                           TF_Status *status);

/**
 * Allocates memory for the time of the computation, of the device unless `alloc_attrs` asks for the host's; the caller frees the tensor. NULL on an error.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TF_AllocateTemp(TF_OpKernelContext *context,
                           TF_DataType dtype,
                           const int64_t *dims,
                           int num_dims,
                           TF_AllocatorAttributes *alloc_attrs,
                           TF_Status *status);

/**
 * The number of the step.
 */
TF_CAPI_EXPORT extern int64_t TF_StepId(TF_OpKernelContext *ctx);

/**
 * The number of the step.
 */
TF_CAPI_EXPORT extern int64_t TF_GetStepId(TF_OpKernelContext *ctx);

/**
 * The number of the loop that the node runs in, from the names of frames and the turns around; 0 outside of loops.
 */
TF_CAPI_EXPORT extern uint64_t TF_GetFrameId(TF_OpKernelContext *ctx);

/**
 * The number of the turn of that loop, from 0.
 */
TF_CAPI_EXPORT extern int64_t TF_GetIterId(TF_OpKernelContext *ctx);

/**
 * The number of the device among those of its type.
 */
TF_CAPI_EXPORT extern int TF_GetDeviceId(TF_OpKernelContext *ctx);

/**
 * The name of the device; valid as long as the session.
 */
TF_CAPI_EXPORT extern TF_StringView TF_GetDeviceName(TF_OpKernelContext *ctx);

/**
 * The version of GraphDefs that the library writes.
 */
TF_CAPI_EXPORT extern int TF_GetGraphDefVersion(TF_OpKernelContext *ctx);

/**
 * The name of the node; valid as long as the kernel.
 */
TF_CAPI_EXPORT extern TF_StringView TF_GetOpKernelName(TF_OpKernelContext *ctx);

/**
 * The container of resources that name none; valid as long as the device.
 */
TF_CAPI_EXPORT extern TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext *ctx);

/**
 * The name of an input as the node's definition has it: `node`, `node:1`; then come `^node` for what it waits for. A value
 * that the run was given has the name of an argument, `_arg_node_0_0`, and one of a call without a graph is `dummy_input`.
 * Empty when there is no such input. Valid as long as the kernel.
 */
TF_CAPI_EXPORT extern
TF_StringView TF_GetOpKernelRequestedInput(TF_OpKernelContext *ctx,
                                           size_t index);

/**
 * Writes the functions of the graph as a serialized `FunctionDefLibrary` into an empty buffer. INVALID_ARGUMENT unless it is
 * empty.
 */
TF_CAPI_EXPORT extern
void TF_GetSerializedFunctionDefLibrary(TF_OpKernelContext *ctx,
                                        TF_Buffer *serialized_function_def_library,
                                        TF_Status *status);

/**
 * Writes the configuration of the session as a serialized `ConfigProto` into an empty buffer; the default one where there is
 * no session. INVALID_ARGUMENT unless the buffer is empty.
 */
TF_CAPI_EXPORT extern
void TF_GetSerializedConfigProto(TF_OpKernelContext *ctx,
                                 TF_Buffer *serialized_config_proto,
                                 TF_Status *status);

/**
 * The stream of the device that a plug-in brought and the kernel runs on. NULL with UNIMPLEMENTED on a CPU.
 */
TF_CAPI_EXPORT extern SP_Stream TF_GetStream(TF_OpKernelContext *ctx, TF_Status *status);

/**
 * Announces work that goes on after the kernel has returned. The step ends, and the context lives, until as many calls of
 * `TF_DecNumDeferredOps` have said that such work has ended. Any thread may call it.
 */
TF_CAPI_EXPORT extern
void TF_IncNumDeferredOps(TF_OpKernelContext *context);

/**
 * Says that work that was announced has ended; the context must not be used after the last. Any thread may call it.
 */
TF_CAPI_EXPORT extern void TF_DecNumDeferredOps(TF_OpKernelContext *context);

/**
 * The place where kernels of this step leave tensors for each other, as functions to call with its `rendezvous`; valid as
 * long as the context. All NULL where there is none.
 */
TF_CAPI_EXPORT extern
TF_RendezvousThunk TF_GetRendezvous(TF_OpKernelContext *ctx);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_KERNELS_H_ */
