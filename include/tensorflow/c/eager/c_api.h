/* Ops executed one by one, without a graph. Handles are pointers to what only the library sees into; deleting NULL
 * is harmless. Any thread may call any function; which objects threads may share is said at each type, and none may
 * be in use when it is deleted. Text and arrays that are passed in belong to the caller and are read during the call
 * only, unless a comment says otherwise. A function that takes a TF_Status sets it on every call: to OK, or to the
 * error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_EAGER_C_API_H_
#define TENSORFLOW_C_EAGER_C_API_H_

#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"

/**
 * What happens to an input that is on another device than its op.
 */
typedef enum TFE_ContextDevicePlacementPolicy {
  /**
   * The call fails.
   */
  TFE_DEVICE_PLACEMENT_EXPLICIT = 0,
  /**
   * It is copied, with a warning.
   */
  TFE_DEVICE_PLACEMENT_WARN = 1,
  /**
   * It is copied. This is the default.
   */
  TFE_DEVICE_PLACEMENT_SILENT = 2,
  /**
   * It is copied if it is an int32; otherwise the call fails.
   */
  TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32 = 3,
} TFE_ContextDevicePlacementPolicy;

/**
 * Where ops run eagerly. Any thread may use it at any time. It must live as long as the ops made with it; tensor handles may
 * live longer.
 */
typedef struct TFE_Context TFE_Context;

/**
 * How contexts are configured. One thread at a time may change it.
 */
typedef struct TFE_ContextOptions TFE_ContextOptions;

/**
 * A call of an op or function: its inputs, attributes and device. One thread at a time may use it.
 */
typedef struct TFE_Op TFE_Op;

/**
 * Extents of a tensor as its device has it. Threads may read them at the same time.
 */
typedef struct TFE_TensorDebugInfo TFE_TensorDebugInfo;

/**
 * A tensor on a device. Threads may use one handle at the same time; it never changes.
 */
typedef struct TFE_TensorHandle TFE_TensorHandle;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * New options with default values. Free them with `TFE_DeleteContextOptions`.
 */
TF_CAPI_EXPORT extern TFE_ContextOptions *TFE_NewContextOptions(void);

/**
 * Sets the configuration: a serialized `ConfigProto` of `proto_len` bytes. INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
void TFE_ContextOptionsSetConfig(TFE_ContextOptions *options,
                                 const void *proto,
                                 size_t proto_len,
                                 TF_Status *status);

/**
 * Lets calls run on a thread of the context's own, in order, if `enable` is not 0; an error is then found when the call runs.
 */
TF_CAPI_EXPORT extern
void TFE_ContextOptionsSetAsync(TFE_ContextOptions *options,
                                unsigned char enable);

/**
 * Sets what happens to inputs on other devices.
 */
TF_CAPI_EXPORT extern
void TFE_ContextOptionsSetDevicePlacementPolicy(TFE_ContextOptions *options,
                                                TFE_ContextDevicePlacementPolicy policy);

/**
 * Frees options; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_DeleteContextOptions(TFE_ContextOptions *options);

/**
 * A new context. NULL options are the defaults. Free it with `TFE_DeleteContext`. NULL with UNIMPLEMENTED for a runtime that
 * there is not.
 */
TF_CAPI_EXPORT extern
TFE_Context *TFE_NewContext(const TFE_ContextOptions *opts,
                                   TF_Status *status);

/**
 * Frees a context, once the calls that were queued have run; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_DeleteContext(TFE_Context *ctx);

/**
 * The devices. Free the list with `TF_DeleteDeviceList`.
 */
TF_CAPI_EXPORT extern TF_DeviceList *TFE_ContextListDevices(TFE_Context *ctx, TF_Status *status);

/**
 * Forgets kernels that were kept, and with them the state of stateful ones such as random streams.
 */
TF_CAPI_EXPORT extern void TFE_ContextClearCaches(TFE_Context *ctx);

/**
 * Sets the placement policy of the calling thread.
 */
TF_CAPI_EXPORT extern
void TFE_ContextSetThreadLocalDevicePlacementPolicy(TFE_Context *ctx,
                                                    TFE_ContextDevicePlacementPolicy policy);

/**
 * The placement policy of the calling thread: its own, or else that of the context.
 */
TF_CAPI_EXPORT extern
TFE_ContextDevicePlacementPolicy TFE_ContextGetDevicePlacementPolicy(TFE_Context *ctx);

/**
 * Makes the context the task that a serialized `ServerDef` of `proto_len` bytes says, of a cluster that has no other. Its
 * devices are then called `/job:J/replica:R/task:T/device:CPU:0` and so on, as many as `default_session_config` says, and
 * the job is the container of resources that name none. Functions stay; resources go, unless the context was this task with
 * this configuration already. Waits for calls that are queued. No port is opened. `keep_alive_secs` has no meaning here.
 *
 * INVALID_ARGUMENT for other bytes, for names or addresses that cannot be, and for jobs of one name; NOT_FOUND for a
 * protocol other than `grpc`; INTERNAL when the task is not in the cluster; UNIMPLEMENTED when others are, which needs a
 * distributed runtime.
 */
TF_CAPI_EXPORT extern
void TFE_ContextSetServerDef(TFE_Context *ctx,
                             int keep_alive_secs,
                             const void *proto,
                             size_t proto_len,
                             TF_Status *status);

/**
 * Adds a function: a serialized `FunctionDef` of `size` bytes. INVALID_ARGUMENT for other bytes, or when another function
 * has its name.
 */
TF_CAPI_EXPORT extern
void TFE_ContextAddFunctionDef(TFE_Context *ctx,
                               const char *serialized_function_def,
                               size_t size,
                               TF_Status *status);

/**
 * Adds a function. INVALID_ARGUMENT when another has its name.
 */
TF_CAPI_EXPORT extern
void TFE_ContextAddFunction(TFE_Context *ctx,
                            TF_Function *function,
                            TF_Status *status);

/**
 * Removes a function. INVALID_ARGUMENT when there is none with this name.
 */
TF_CAPI_EXPORT extern void TFE_ContextRemoveFunction(TFE_Context *ctx, const char *name, TF_Status *status);

/**
 * Whether there is a function with this name: 1 or 0.
 */
TF_CAPI_EXPORT extern unsigned char TFE_ContextHasFunction(TFE_Context *ctx, const char *name);

/**
 * Starts to collect what runs.
 */
TF_CAPI_EXPORT extern void TFE_ContextEnableRunMetadata(TFE_Context *ctx);

/**
 * Stops to collect what runs, and forgets it.
 */
TF_CAPI_EXPORT extern void TFE_ContextDisableRunMetadata(TFE_Context *ctx);

/**
 * Fills `buf` with a serialized `RunMetadata` of what ran, and of graphs that were collected, since the last call, and
 * forgets it. Waits for the calls of this thread; their error, if one is pending.
 */
TF_CAPI_EXPORT extern void TFE_ContextExportRunMetadata(TFE_Context *ctx, TF_Buffer *buf, TF_Status *status);

/**
 * Starts a step. Steps bound the life of what ops keep for one step only; here nothing is kept so.
 */
TF_CAPI_EXPORT extern void TFE_ContextStartStep(TFE_Context *ctx);

/**
 * Ends a step.
 */
TF_CAPI_EXPORT extern void TFE_ContextEndStep(TFE_Context *ctx);

/**
 * A handle of a tensor, whose memory it shares and which must not change any more. Free it with `TFE_DeleteTensorHandle`.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_NewTensorHandle(const TF_Tensor *t,
                                             TF_Status *status);

/**
 * Frees a handle; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_DeleteTensorHandle(TFE_TensorHandle *h);

/**
 * The element type; 0 for NULL.
 */
TF_CAPI_EXPORT extern TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle *h);

/**
 * The number of dimensions, once it is known; -1 with INVALID_ARGUMENT for NULL, or with the error of the call that should
 * have made the tensor.
 */
TF_CAPI_EXPORT extern
int TFE_TensorHandleNumDims(TFE_TensorHandle *h,
                            TF_Status *status);

/**
 * The number of elements, once it is known; -1 with INVALID_ARGUMENT for NULL, or with the error of the call that should
 * have made the tensor.
 */
TF_CAPI_EXPORT extern
int64_t TFE_TensorHandleNumElements(TFE_TensorHandle *h,
                                    TF_Status *status);

/**
 * An extent; -1 with INVALID_ARGUMENT when there is no such dimension.
 */
TF_CAPI_EXPORT extern int64_t TFE_TensorHandleDim(TFE_TensorHandle *h, int dim_index, TF_Status *status);

/**
 * Full name of the device of the op that made the tensor. The string is never freed. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern const char *TFE_TensorHandleDeviceName(TFE_TensorHandle *h, TF_Status *status);

/**
 * Full name of the device in whose memory the tensor is. The string is never freed. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern const char *TFE_TensorHandleBackingDeviceName(TFE_TensorHandle *h, TF_Status *status);

/**
 * A second handle of the same tensor. Free it with `TFE_DeleteTensorHandle`.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_TensorHandleCopySharingTensor(TFE_TensorHandle *h,
                                                           TF_Status *status);

/**
 * The tensor, sharing its memory; waits for the call that makes it. Free it with `TF_DeleteTensor`. NULL with the error of
 * that call, with INVALID_ARGUMENT for a packed handle, or with what a device of the program says.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TFE_TensorHandleResolve(TFE_TensorHandle *h,
                                   TF_Status *status);

/**
 * A handle of the tensor on another device of the context; memory is shared where the devices share it, and devices of the
 * program are asked to copy. Free it with `TFE_DeleteTensorHandle`. NULL with INVALID_ARGUMENT for a device that is not
 * there, or with what the program says.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_TensorHandleCopyToDevice(TFE_TensorHandle *h,
                                                      TFE_Context *ctx,
                                                      const char *device_name,
                                                      TF_Status *status);

/**
 * How the tensor lies on its device. Free it with `TFE_DeleteTensorDebugInfo`.
 */
TF_CAPI_EXPORT extern
TFE_TensorDebugInfo *TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle *h,
                                                            TF_Status *status);

/**
 * Frees it; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo *debug_info);

/**
 * The number of dimensions on the device; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo *debug_info);

/**
 * An extent on the device; -1 when there is no such dimension.
 */
TF_CAPI_EXPORT extern int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo *debug_info, int dim_index);

/**
 * A call of the op or function with this name, to be given inputs and attributes. Free it with `TFE_DeleteOp`. NULL with
 * NOT_FOUND when there is no such op.
 */
TF_CAPI_EXPORT extern
TFE_Op *TFE_NewOp(TFE_Context *ctx,
                         const char *op_or_function_name,
                         TF_Status *status);

/**
 * Frees a call; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_DeleteOp(TFE_Op *op);

/**
 * The name of the op. The string lives as long as the call.
 */
TF_CAPI_EXPORT extern const char *TFE_OpGetName(const TFE_Op *op, TF_Status *status);

/**
 * The context that the call was made with; it belongs to who made it.
 */
TF_CAPI_EXPORT extern TFE_Context *TFE_OpGetContext(const TFE_Op *op, TF_Status *status);

/**
 * Asks for a device by its name, in full or from `/device:` on; empty for any. INVALID_ARGUMENT when it is not of that form;
 * whether there is such a device is found out by `TFE_Execute`.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetDevice(TFE_Op *op,
                     const char *device_name,
                     TF_Status *status);

/**
 * The device asked for, or after `TFE_Execute` the one it ran on. Empty for any. The string is never freed.
 */
TF_CAPI_EXPORT extern const char *TFE_OpGetDevice(const TFE_Op *op, TF_Status *status);

/**
 * Adds an input, for an input argument that takes one tensor; or one of a list. The handle may be deleted before the call
 * is executed. INVALID_ARGUMENT when all arguments have their inputs.
 */
TF_CAPI_EXPORT extern
void TFE_OpAddInput(TFE_Op *op,
                    TFE_TensorHandle *input,
                    TF_Status *status);

/**
 * Adds all inputs of an input argument that takes a list.
 */
TF_CAPI_EXPORT extern
void TFE_OpAddInputList(TFE_Op *op,
                        TFE_TensorHandle**inputs,
                        int num_inputs,
                        TF_Status *status);

/**
 * The number of inputs, those of lists counted one by one.
 */
TF_CAPI_EXPORT extern int TFE_OpGetFlatInputCount(const TFE_Op *op, TF_Status *status);

/**
 * An input, those of lists counted one by one. It belongs to the call, and lives until inputs change. NULL with INVALID_ARGUMENT when there is none.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_OpGetFlatInput(const TFE_Op *op,
                                            int index,
                                            TF_Status *status);

/**
 * The kind of an attribute of the op; `is_list` becomes 1 if it is a list, else 0. INVALID_ARGUMENT when the op has no such
 * attribute.
 */
TF_CAPI_EXPORT extern
TF_AttrType TFE_OpGetAttrType(TFE_Op *op,
                                    const char *attr_name,
                                    unsigned char *is_list,
                                    TF_Status *status);

/**
 * As `TFE_OpGetAttrType`, by the name of the op.
 */
TF_CAPI_EXPORT extern
TF_AttrType TFE_OpNameGetAttrType(TFE_Context *ctx,
                                        const char *op_or_function_name,
                                        const char *attr_name,
                                        unsigned char *is_list,
                                        TF_Status *status);

/**
 * The number of inputs of an input argument: 1 unless it takes a list. -1 with INVALID_ARGUMENT when the op has no such
 * argument, or the number is not known yet.
 */
TF_CAPI_EXPORT extern int TFE_OpGetInputLength(TFE_Op *op, const char *input_name, TF_Status *status);

/**
 * The number of outputs of an output argument: 1 unless it is a list. -1 with INVALID_ARGUMENT when the op has no such
 * argument, or the number is not known yet.
 */
TF_CAPI_EXPORT extern int TFE_OpGetOutputLength(TFE_Op *op, const char *output_name, TF_Status *status);

/**
 * Runs the call and puts its outputs, to be freed with `TFE_DeleteTensorHandle`, in `retvals`. `num_retvals` says how many
 * there is room for, and becomes their number. The call has no inputs then, and can be given new ones.
 *
 * With an asynchronous executor the call is queued; what uses its outputs waits for it, and finds its error.
 *
 * INVALID_ARGUMENT when inputs or attributes do not fit the op, there is no such device, or there is too little room;
 * otherwise what the op says, or the error that is pending.
 */
TF_CAPI_EXPORT extern
void TFE_Execute(TFE_Op *op,
                 TFE_TensorHandle**retvals,
                 int *num_retvals,
                 TF_Status *status);

/**
 * Sets an attribute to a string of `length` bytes.
 */
TF_CAPI_EXPORT extern void TFE_OpSetAttrString(TFE_Op *op, const char *attr_name, const void *value, size_t length);

/**
 * Sets an attribute to an integer.
 */
TF_CAPI_EXPORT extern void TFE_OpSetAttrInt(TFE_Op *op, const char *attr_name, int64_t value);

/**
 * Sets an attribute to a float.
 */
TF_CAPI_EXPORT extern void TFE_OpSetAttrFloat(TFE_Op *op, const char *attr_name, float value);

/**
 * Sets an attribute to a truth value: 0 is false.
 */
TF_CAPI_EXPORT extern void TFE_OpSetAttrBool(TFE_Op *op, const char *attr_name, unsigned char value);

/**
 * Sets an attribute to an element type.
 */
TF_CAPI_EXPORT extern void TFE_OpSetAttrType(TFE_Op *op, const char *attr_name, TF_DataType value);

/**
 * Sets an attribute to a shape: a negative `num_dims` is an unknown rank, -1 an unknown extent.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrShape(TFE_Op *op,
                        const char *attr_name,
                        const int64_t *dims,
                        int num_dims,
                        TF_Status *out_status);

/**
 * Sets an attribute to the function that another call is of, with the attributes of that call.
 */
TF_CAPI_EXPORT extern void TFE_OpSetAttrFunction(TFE_Op *op, const char *attr_name, const TFE_Op *value);

/**
 * Sets an attribute to the function with this name of `length` bytes.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrFunctionName(TFE_Op *op,
                               const char *attr_name,
                               const char *data,
                               size_t length);

/**
 * Sets an attribute to a tensor. Its memory is shared and must not change any more.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrTensor(TFE_Op *op,
                         const char *attr_name,
                         TF_Tensor *tensor,
                         TF_Status *status);

/**
 * Sets an attribute to a list of strings; `lengths` gives their numbers of bytes.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrStringList(TFE_Op *op,
                             const char *attr_name,
                             const void *const *values,
                             const size_t *lengths,
                             int num_values);

/**
 * Sets an attribute to a list of integers.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrIntList(TFE_Op *op,
                          const char *attr_name,
                          const int64_t *values,
                          int num_values);

/**
 * Sets an attribute to a list of floats.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrFloatList(TFE_Op *op,
                            const char *attr_name,
                            const float *values,
                            int num_values);

/**
 * Sets an attribute to a list of truth values.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrBoolList(TFE_Op *op,
                           const char *attr_name,
                           const unsigned char *values,
                           int num_values);

/**
 * Sets an attribute to a list of element types.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrTypeList(TFE_Op *op,
                           const char *attr_name,
                           const TF_DataType *values,
                           int num_values);

/**
 * Sets an attribute to a list of shapes, each with its number of dimensions.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrShapeList(TFE_Op *op,
                            const char *attr_name,
                            const int64_t **dims,
                            const int *num_dims,
                            int num_values,
                            TF_Status *out_status);

/**
 * Sets an attribute to a list of functions, each given by a call of it.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrFunctionList(TFE_Op *op,
                               const char *attr_name,
                               const TFE_Op**value,
                               int num_values);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_EAGER_C_API_H_ */
