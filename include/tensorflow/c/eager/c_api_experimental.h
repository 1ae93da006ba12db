/* More of ops executed one by one: executors, cancellation, metrics, devices of the program, memory of handles,
 * settings of contexts. Any thread may call any function; which objects threads may share is said at each type, and
 * none may be in use when it is deleted. Text and arrays that are passed in belong to the caller and are read during
 * the call only, unless a comment says otherwise. A function that takes a TF_Status sets it on every call: to OK, or
 * to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"

#define TFE_CUSTOM_DEVICE_VERSION 4

/* In C++ some fields have a value at first, and some parameters are references. */
#ifdef __cplusplus
#define TFE_INITIALLY(value) = value
#define TFE_BY_REFERENCE(type) const type &
#else
#define TFE_INITIALLY(value)
#define TFE_BY_REFERENCE(type) const type *
#endif

/**
 * What a device of the program does. Its functions may be called from any thread that uses the context; they get what came
 * with the device as `device_info`. Each sets the status that it gets; where that is not OK, what it returns is ignored.
 */
typedef struct TFE_CustomDevice {
  /* TFE_CUSTOM_DEVICE_VERSION. */
  int version TFE_INITIALLY(TFE_CUSTOM_DEVICE_VERSION);
  /* A new handle of the tensor on this device. `tensor` belongs to the caller. */
  TFE_TensorHandle *(*copy_tensor_to_device)(TFE_Context *context, TFE_TensorHandle *tensor, TF_Status *status,
                                             void *device_info);
  /* A new handle of the tensor, which is on this device, on a device of the context. `tensor` belongs to the caller. */
  TFE_TensorHandle *(*copy_tensor_from_device)(TFE_Context *context, TFE_TensorHandle *tensor,
                                               const char *target_device_name, TF_Status *status, void *device_info);
  /* Executes an op: fills `outputs` with new handles. `num_outputs` says how many there is room for, and becomes their
   * number. Inputs may be on other devices. */
  void (*execute)(const TFE_Op *op, int *num_outputs, TFE_TensorHandle **outputs, TF_Status *s, void *device_info);
  /* Called once, when the device goes. */
  void (*delete_device)(void *device_info);
  /* One new handle for several, one of which is on this device; NULL where that cannot be. */
  TFE_TensorHandle *(*pack)(TFE_Context *context, TFE_TensorHandle **handles, int num_handles, TF_Status *s,
                            void *device_info) TFE_INITIALLY(nullptr);
  /* Whether an op with inputs on this device is executed by it; NULL to leave that to the context. */
  bool (*shall_pin_to_this_device)(const TFE_Op *op, TF_Status *s) TFE_INITIALLY(nullptr);
} TFE_CustomDevice;

/**
 * What can be asked of a tensor of such a device. The functions get the `data` of the tensor.
 */
typedef struct TFE_CustomDeviceTensorHandleMethods {
  /* TFE_CUSTOM_DEVICE_VERSION. */
  int version TFE_INITIALLY(TFE_CUSTOM_DEVICE_VERSION);
  /* The number of dimensions. */
  int (*num_dims)(void *data, TF_Status *status);
  /* An extent. */
  int64_t (*dim)(void *data, int dim_index, TF_Status *status);
  /* Called once, when the last handle goes. */
  void (*deallocator)(void *data);
  /* What the tensor looks like as text, or NULL. */
  TF_Buffer *(*summarize)(void *data, TF_Status *status) TFE_INITIALLY(nullptr);
} TFE_CustomDeviceTensorHandle;


/**
 * Ends calls early, once. Any thread may use it at any time.
 */
typedef struct TFE_CancellationManager TFE_CancellationManager;

/**
 * Where calls run: on the caller's thread, or on a thread of the executor's own, in order. Any thread may use it at any
 * time.
 */
typedef struct TFE_Executor TFE_Executor;

/**
 * A gauge without labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringBoolGauge0 TFE_MonitoringBoolGauge0;

/**
 * A gauge with one label. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringBoolGauge1 TFE_MonitoringBoolGauge1;

/**
 * A gauge with two labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringBoolGauge2 TFE_MonitoringBoolGauge2;

/**
 * A truth value that is set. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringBoolGaugeCell TFE_MonitoringBoolGaugeCell;

/**
 * Where buckets end. Threads may read one at the same time.
 */
typedef struct TFE_MonitoringBuckets TFE_MonitoringBuckets;

/**
 * A counter without labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringCounter0 TFE_MonitoringCounter0;

/**
 * A counter with one label. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringCounter1 TFE_MonitoringCounter1;

/**
 * A counter with two labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringCounter2 TFE_MonitoringCounter2;

/**
 * A number that is counted up. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringCounterCell TFE_MonitoringCounterCell;

/**
 * A gauge without labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringIntGauge0 TFE_MonitoringIntGauge0;

/**
 * A gauge with one label. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringIntGauge1 TFE_MonitoringIntGauge1;

/**
 * A gauge with two labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringIntGauge2 TFE_MonitoringIntGauge2;

/**
 * A number that is set. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringIntGaugeCell TFE_MonitoringIntGaugeCell;

/**
 * A sampler without labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringSampler0 TFE_MonitoringSampler0;

/**
 * A sampler with one label. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringSampler1 TFE_MonitoringSampler1;

/**
 * A sampler with two labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringSampler2 TFE_MonitoringSampler2;

/**
 * Values that were added, counted by buckets. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringSamplerCell TFE_MonitoringSamplerCell;

/**
 * A gauge without labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringStringGauge0 TFE_MonitoringStringGauge0;

/**
 * A gauge with one label. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringStringGauge1 TFE_MonitoringStringGauge1;

/**
 * A gauge with two labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringStringGauge2 TFE_MonitoringStringGauge2;

/**
 * A gauge with three labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringStringGauge3 TFE_MonitoringStringGauge3;

/**
 * A gauge with four labels. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringStringGauge4 TFE_MonitoringStringGauge4;

/**
 * A text that is set. Any thread may use it at any time.
 */
typedef struct TFE_MonitoringStringGaugeCell TFE_MonitoringStringGaugeCell;

/**
 * The attributes of a call: those that were set, those that follow from its inputs, and defaults. It belongs to the call.
 * Threads may use it at the same time, while no thread changes the call.
 */
typedef struct TFE_OpAttrs TFE_OpAttrs;

/**
 * Names a callback of a manager.
 */
typedef int64_t TFE_CancellationToken;

/**
 * A function to call upon cancellation, and what to pass to it.
 */
typedef struct TFE_CancelCallback {
  /**
   * The function.
   */
  void (*callback)(void *context);
  /**
   * What is passed to it.
   */
  void *context;
} TFE_CancelCallback;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Asks for another runtime, which there is not: `TFE_NewContext` then fails with UNIMPLEMENTED.
 */
TF_CAPI_EXPORT extern void TFE_ContextOptionsSetTfrt(TFE_ContextOptions *options, bool use_tfrt);

/**
 * The number of the context among those of its cluster; 0 without a cluster. It changes with the cluster.
 */
TF_CAPI_EXPORT extern uint64_t TFE_GetContextId(TFE_Context *ctx);

/**
 * Starts to collect the graphs of functions when they are made ready to run; `TFE_ContextExportRunMetadata` gives them.
 */
TF_CAPI_EXPORT extern void TFE_ContextEnableGraphCollection(TFE_Context *ctx);

/**
 * Stops to collect graphs.
 */
TF_CAPI_EXPORT extern void TFE_ContextDisableGraphCollection(TFE_Context *ctx);

/**
 * Fills `buf` with the job, replica and task of the first CPU, as they stand before `/device:` in its name.
 */
TF_CAPI_EXPORT extern void TFE_HostAddressSpace(TFE_Context *ctx, TF_Buffer *buf);

/**
 * Lets ops whose device is not there run on another one, if `enable` is not 0.
 */
TF_CAPI_EXPORT extern
void TFE_ContextSetSoftDevicePlacement(TFE_Context *ctx,
                                       unsigned char enable,
                                       TF_Status *status);

/**
 * Logs which device each op runs on, if `enable` is not 0.
 */
TF_CAPI_EXPORT extern
void TFE_ContextSetLogDevicePlacement(TFE_Context *ctx,
                                      unsigned char enable,
                                      TF_Status *status);

/**
 * Would run each op as a function of its own. It makes no difference to what ops give, and is not needed here.
 */
TF_CAPI_EXPORT extern
void TFE_ContextSetRunEagerOpAsFunction(TFE_Context *ctx,
                                        unsigned char enable,
                                        TF_Status *status);

/**
 * Would mark functions to be compiled. It makes no difference to what they give.
 */
TF_CAPI_EXPORT extern
void TFE_ContextSetJitCompileRewrite(TFE_Context *ctx,
                                     unsigned char enable,
                                     TF_Status *status);

/**
 * Fills `buf` with the names of ops that ran, as far as they are kept: none are.
 */
TF_CAPI_EXPORT extern void TFE_GetExecutedOpNames(TFE_Context *ctx, TF_Buffer *buf, TF_Status *status);

/**
 * Adds CPU devices to the context, so that there are the numbers 0 to `num_cpus - 1` for the job, replica and task in
 * `prefix` (this process for NULL or empty); the device with the number 0 is the context's first and is not added.
 * INVALID_ARGUMENT when one of them is there already; then none is added.
 */
TF_CAPI_EXPORT extern
void TFE_SetLogicalCpuDevices(TFE_Context *ctx,
                              int num_cpus,
                              const char *prefix,
                              TF_Status *status);

/**
 * Fills `buf` with a serialized `FunctionDef`. NOT_FOUND when there is no function with this name; INVALID_ARGUMENT unless
 * the buffer is empty.
 */
TF_CAPI_EXPORT extern
void TFE_ContextGetFunctionDef(TFE_Context *ctx,
                               const char *function_name,
                               TF_Buffer *buf,
                               TF_Status *status);

/**
 * Fills `buf` with where the nodes of a function come from: nothing, as that is not kept. NOT_FOUND when there is no
 * function with this name.
 */
TF_CAPI_EXPORT extern
void TFE_ContextGetGraphDebugInfo(TFE_Context *ctx,
                                  const char *function_name,
                                  TF_Buffer *buf,
                                  TF_Status *status);

/**
 * The function with this name. Free it with `TF_DeleteFunction`. NULL with NOT_FOUND when there is none.
 */
TF_CAPI_EXPORT extern TF_Function *TFE_ContextGetFunction(TFE_Context *ctx, const char *name, TF_Status *status);

/**
 * As `TFE_ContextSetServerDef`: there is nobody to wait for.
 */
TF_CAPI_EXPORT extern
void TFE_ContextSetServerDefWithTimeout(TFE_Context *ctx,
                                        int keep_alive_secs,
                                        const void *proto,
                                        size_t proto_len,
                                        int64_t init_timeout_in_ms,
                                        TF_Status *status,
                                        bool clear_existing_contexts);

/**
 * As `TFE_ContextSetServerDef`: there is nobody to wait for, or to ask again.
 */
TF_CAPI_EXPORT extern
void TFE_ContextSetServerDefWithTimeoutAndRetries(TFE_Context *ctx,
                                                  int keep_alive_secs,
                                                  const void *proto,
                                                  size_t proto_len,
                                                  int64_t init_timeout_in_ms,
                                                  int retries,
                                                  TF_Status *status,
                                                  bool clear_existing_contexts);

/**
 * As `TFE_ContextSetServerDef`, for ops on the devices of this process alone.
 */
TF_CAPI_EXPORT extern
void TFE_InitializeLocalOnlyContext(TFE_Context *ctx,
                                    int keep_alive_secs,
                                    const void *proto,
                                    size_t proto_len,
                                    TF_Status *status);

/**
 * Tells the context of a change of its cluster, which has this one task before and after: devices and what is on them
 * stay.
 *
 * INVALID_ARGUMENT for bytes that are no `ServerDef`, or when the context's task is not in the cluster; FAILED_PRECONDITION
 * when the context is not part of one; UNIMPLEMENTED when there are other tasks, which needs a distributed runtime.
 */
TF_CAPI_EXPORT extern
void TFE_ContextUpdateServerDef(TFE_Context *ctx,
                                int keep_alive_secs,
                                const void *proto,
                                size_t proto_len,
                                TF_Status *status);

/**
 * As `TFE_ContextUpdateServerDef`.
 */
TF_CAPI_EXPORT extern
void TFE_ContextUpdateServerDefWithTimeout(TFE_Context *ctx,
                                           int keep_alive_secs,
                                           const void *proto,
                                           size_t proto_len,
                                           int64_t init_timeout_in_ms,
                                           TF_Status *status);

/**
 * Whether a task of the cluster, such as `/job:worker/replica:0/task:0`, answers. INVALID_ARGUMENT for one that is not in
 * the cluster.
 */
TF_CAPI_EXPORT extern
bool TFE_ContextCheckAlive(TFE_Context *ctx,
                           const char *worker_name,
                           TF_Status *status);

/**
 * Shares a value under a key, a path such as `folder/name`. ALREADY_EXISTS when the key has one; FAILED_PRECONDITION without
 * a coordination service.
 */
TF_CAPI_EXPORT extern
void TFE_InsertConfigKeyValue(TFE_Context *ctx,
                              const char *key,
                              const char *value,
                              TF_Status *status);

/**
 * Fills `value_buf` with the value of a key, once there is one: waits for so many milliseconds, without end if there are
 * none. DEADLINE_EXCEEDED when there still is no value; CANCELLED when the cluster is replaced meanwhile; FAILED_PRECONDITION without
 * a coordination service; INVALID_ARGUMENT unless the buffer is empty.
 */
TF_CAPI_EXPORT extern
void TFE_GetConfigKeyValue(TFE_Context *ctx,
                           const char *key,
                           int64_t timeout_in_ms,
                           TF_Buffer *value_buf,
                           TF_Status *status);

/**
 * Takes back the value of a key, and those of keys below it. Fine when there are none. FAILED_PRECONDITION without a
 * coordination service.
 */
TF_CAPI_EXPORT extern void TFE_DeleteConfigKeyValue(TFE_Context *ctx, const char *key, TF_Status *status);

/**
 * Tells the cluster that this task has failed. FAILED_PRECONDITION when that was said before, or without a coordination
 * service.
 */
TF_CAPI_EXPORT extern
void TFE_ReportErrorToCluster(TFE_Context *ctx,
                              int error_code,
                              const char *error_message,
                              TF_Status *status);

/**
 * Puts the error that a task has reported, or OK, into `states`, a `TF_Status`. `tasks` holds the task: a serialized
 * `CoordinatedTask`. INVALID_ARGUMENT for other bytes, or a task that is not in the cluster; FAILED_PRECONDITION without a
 * coordination service.
 */
TF_CAPI_EXPORT extern
void TFE_GetTaskStates(TFE_Context *ctx,
                       TFE_BY_REFERENCE(TF_Buffer) tasks,
                       void *states,
                       TF_Status *status);

/**
 * Waits until all tasks of the cluster wait at this barrier: there is one, so it goes on at once. FAILED_PRECONDITION after it
 * has reported an error, or without a coordination service.
 */
TF_CAPI_EXPORT extern
void TFE_WaitAtBarrier(TFE_Context *ctx,
                       const char *barrier_id,
                       int64_t barrier_timeout_in_ms,
                       TF_Status *status);

/**
 * A new executor, asynchronous if `is_async`. With a positive `in_flight_nodes_limit`, calls wait while so many are queued.
 * `enable_streaming_enqueue` concerns other processes and is not used. Free it with `TFE_DeleteExecutor`.
 */
TF_CAPI_EXPORT extern
TFE_Executor *TFE_NewExecutor(bool is_async,
                                     bool enable_streaming_enqueue,
                                     int in_flight_nodes_limit);

/**
 * Frees an executor, once what is queued has run; threads that use it use the context's own again. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_DeleteExecutor(TFE_Executor *executor);

/**
 * Whether it is asynchronous. False for NULL.
 */
TF_CAPI_EXPORT extern bool TFE_ExecutorIsAsync(TFE_Executor *executor);

/**
 * Waits until all that is queued has run. The error that is pending, until `TFE_ExecutorClearError`.
 */
TF_CAPI_EXPORT extern void TFE_ExecutorWaitForAllPendingNodes(TFE_Executor *executor, TF_Status *status);

/**
 * Forgets the error that is pending, so that calls run again.
 */
TF_CAPI_EXPORT extern void TFE_ExecutorClearError(TFE_Executor *executor);

/**
 * Lets calls of this thread run on an executor, until that is deleted; NULL for the context's own.
 */
TF_CAPI_EXPORT extern void TFE_ContextSetExecutorForThread(TFE_Context *ctx, TFE_Executor *executor);

/**
 * Where calls of this thread run. Free the handle with `TFE_DeleteExecutor`. NULL for NULL.
 */
TF_CAPI_EXPORT extern TFE_Executor *TFE_ContextGetExecutorForThread(TFE_Context *ctx);

/**
 * Waits until all that is queued has run, on all executors that the context knows. The first error that is pending.
 */
TF_CAPI_EXPORT extern void TFE_ContextAsyncWait(TFE_Context *ctx, TF_Status *status);

/**
 * A new manager. Free it with `TFE_DeleteCancellationManager`.
 */
TF_CAPI_EXPORT extern TFE_CancellationManager *TFE_NewCancellationManager(void);

/**
 * Whether it has cancelled, its callbacks done. False for NULL.
 */
TF_CAPI_EXPORT extern bool TFE_CancellationManagerIsCancelled(TFE_CancellationManager *manager);

/**
 * Whether it is cancelling right now. False for NULL.
 */
TF_CAPI_EXPORT extern bool TFE_CancellationManagerIsCancelling(TFE_CancellationManager *manager);

/**
 * Cancels: calls that listen to it end with CANCELLED, and callbacks are called on this thread. Only the first time.
 */
TF_CAPI_EXPORT extern void TFE_CancellationManagerStartCancel(TFE_CancellationManager *manager);

/**
 * A token that no other callback of the manager has: 0, 1, 2 and so on.
 */
TF_CAPI_EXPORT extern TFE_CancellationToken TFE_CancellationManagerGetToken(TFE_CancellationManager *manager);

/**
 * Has a function called upon cancellation; it is copied. False, and nothing is registered, when that has begun, or for NULL.
 * `callback_name` is not used.
 */
TF_CAPI_EXPORT extern
bool TFE_CancellationManagerRegisterCallback(TFE_CancellationManager *manager,
                                             TFE_CancellationToken token,
                                             const TFE_CancelCallback *c_callback,
                                             const char *callback_name);

/**
 * Takes a callback back: after this it is not called. False when it was called, or is being called, which this waits for.
 * Must not be called from a callback.
 */
TF_CAPI_EXPORT extern
bool TFE_CancellationManagerDeregisterCallback(TFE_CancellationManager *manager,
                                               TFE_CancellationToken token);

/**
 * As `TFE_CancellationManagerDeregisterCallback`, without waiting.
 */
TF_CAPI_EXPORT extern
bool TFE_CancellationManagerTryDeregisterCallback(TFE_CancellationManager *manager,
                                                  TFE_CancellationToken token);

/**
 * Frees a manager, cancelling first if it has callbacks; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_DeleteCancellationManager(TFE_CancellationManager *manager);

/**
 * Makes a call anew, of another op: without inputs, attributes and cancellation, on any device or on the one that
 * `raw_device_name` asks for unless that is NULL or empty. Cheaper than a new call.
 *
 * NOT_FOUND when there is no such op; INVALID_ARGUMENT for a device name of another form.
 */
TF_CAPI_EXPORT extern
void TFE_OpReset(TFE_Op *op_to_reset,
                 const char *op_or_function_name,
                 const char *raw_device_name,
                 TF_Status *status);

/**
 * The attributes of a call as they are now. They belong to the call, live as long, and change when this is called again. NULL for
 * NULL.
 */
TF_CAPI_EXPORT extern
const TFE_OpAttrs *TFE_OpGetAttrs(const TFE_Op *op);

/**
 * Sets those of the attributes that the call does not have yet.
 */
TF_CAPI_EXPORT extern void TFE_OpAddAttrs(TFE_Op *op, const TFE_OpAttrs *attrs);

/**
 * Fills `buf` with a serialized `NameAttrList`: the name of the op and its attributes. INVALID_ARGUMENT unless the buffer
 * is empty.
 */
TF_CAPI_EXPORT extern
void TFE_OpAttrsSerialize(const TFE_OpAttrs *attrs,
                          TF_Buffer *buf,
                          TF_Status *status);

/**
 * Sets an attribute to the value in a serialized `AttrValue` of `proto_len` bytes. INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetAttrValueProto(const TFE_Op *op,
                             const char *attr_name,
                             const void *proto,
                             size_t proto_len,
                             TF_Status *status);

/**
 * Lets a cancellation manager end the call early, with CANCELLED. The manager may be deleted before the call is executed.
 * NULL lets nothing end it.
 */
TF_CAPI_EXPORT extern
void TFE_OpSetCancellationManager(TFE_Op *op,
                                  TFE_CancellationManager *cancellation_manager,
                                  TF_Status *status);

/**
 * The memory of the tensor, once it is there; for a device of the program, what that gave. It must not be written to, and
 * lives as long as the handle. NULL with INVALID_ARGUMENT for NULL, or with the error of the call that should have made the
 * tensor.
 */
TF_CAPI_EXPORT extern
void *TFE_TensorHandleDevicePointer(TFE_TensorHandle *h,
                                    TF_Status *status);

/**
 * The number of bytes of that memory. 0 with INVALID_ARGUMENT for NULL and for a device of the program, or with the error of
 * the call that should have made the tensor.
 */
TF_CAPI_EXPORT extern
size_t TFE_TensorHandleDeviceMemorySize(TFE_TensorHandle *h,
                                        TF_Status *status);

/**
 * A handle of `len` bytes at `data`, on the named device; in use until `deallocator` is called with `data`, `len` and
 * `deallocator_arg`. That happens exactly once, on any thread; right away where the memory is copied because its address is
 * not a multiple of 64, or when this fails. Free the handle with `TFE_DeleteTensorHandle`.
 *
 * NULL with INVALID_ARGUMENT when there is no such device, or the bytes do not fit type and shape.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_NewTensorHandleFromDeviceMemory(TFE_Context *ctx,
                                                      const char *device_name,
                                                      TF_DataType dtype,
                                                      const int64_t *dims,
                                                      int num_dims,
                                                      void *data,
                                                      size_t len,
                                                      void (*deallocator)(void *data, size_t len, void *arg),
                                                      void *deallocator_arg,
                                                      TF_Status *status);

/**
 * A handle of a scalar with a copy of `len` bytes at `data`. Free it with `TFE_DeleteTensorHandle`. NULL with
 * INVALID_ARGUMENT when the type takes another number of bytes, or none that can be copied.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_NewTensorHandleFromScalar(TF_DataType data_type,
                                                void *data,
                                                size_t len,
                                                TF_Status *status);

/**
 * A tensor for the program to fill and to make a handle of. Free it with `TF_DeleteTensor`. NULL with INVALID_ARGUMENT for a
 * shape that is not valid or a type that takes no bytes; with RESOURCE_EXHAUSTED when memory is out.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TFE_AllocateHostTensor(TFE_Context *ctx,
                                  TF_DataType dtype,
                                  const int64_t *dims,
                                  int num_dims,
                                  TF_Status *status);

/**
 * As `TFE_NewTensorHandle`.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_NewTensorHandleFromTensor(TFE_Context *ctx,
                                                TF_Tensor *t,
                                                TF_Status *status);

/**
 * The type of the device of the op that made the tensor, such as `CPU`. The string is never freed. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern const char *TFE_TensorHandleDeviceType(TFE_TensorHandle *h, TF_Status *status);

/**
 * The number of the device of the op that made the tensor. -1 with INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern int TFE_TensorHandleDeviceID(TFE_TensorHandle *h, TF_Status *status);

/**
 * The state of the connection to the process that has the tensor: OK, as all tensors are in this one. INVALID_ARGUMENT for
 * NULL.
 */
TF_CAPI_EXPORT extern
void TFE_TensorHandleGetStatus(TFE_TensorHandle *h,
                               TF_Status *status);

/**
 * Registers a device of the program, under a full name that no other device of the context has. `device_info` is passed to
 * its functions. When the device goes, with the context and the last tensor on it, `delete_device` is called; right away
 * when this fails.
 *
 * INVALID_ARGUMENT for a name of another form; ALREADY_EXISTS for one that is taken.
 */
TF_CAPI_EXPORT extern
void TFE_RegisterCustomDevice(TFE_Context *ctx,
                              TFE_CustomDevice device,
                              const char *device_name,
                              void *device_info,
                              TF_Status *status);

/**
 * Whether a device of the program has this full name. False for NULL.
 */
TF_CAPI_EXPORT extern bool TFE_IsCustomDevice(TFE_Context *ctx, const char *device_name);

/**
 * A handle of what a device of the program keeps as a tensor. `data` is passed to the functions in `methods`; its
 * `deallocator` is called when the last handle goes, and right away when this fails. Free the handle with
 * `TFE_DeleteTensorHandle`. NULL with INVALID_ARGUMENT when there is no such device.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_NewCustomDeviceTensorHandle(TFE_Context *ctx,
                                                  const char *device_name,
                                                  TF_DataType dtype,
                                                  void *data,
                                                  TFE_CustomDeviceTensorHandle methods,
                                                  TF_Status *status);

/**
 * One handle for tensors of one type on several devices, as functions that run on all of them take it; or what a device of
 * the program makes of them, when one of them is on it. Free it with `TFE_DeleteTensorHandle`.
 *
 * NULL with INVALID_ARGUMENT for no tensors, or a packed one among them; with UNIMPLEMENTED when the device of the program
 * cannot pack.
 */
TF_CAPI_EXPORT extern
TFE_TensorHandle *TFE_CreatePackedTensorHandle(TFE_Context *ctx,
                                               TFE_TensorHandle**handles,
                                               int *num_handles,
                                               TF_Status *status);

/**
 * Adds to a counter.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringCounterCellIncrementBy(TFE_MonitoringCounterCell *cell, int64_t value);

/**
 * What has been counted; 0 for NULL.
 */
TF_CAPI_EXPORT extern int64_t TFE_MonitoringCounterCellValue(TFE_MonitoringCounterCell *cell);

/**
 * A new counter without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteCounter0`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringCounter0 *TFE_MonitoringNewCounter0(const char *name,
                                                         TF_Status *status,
                                                         const char *description);

/**
 * Frees a counter, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteCounter0(TFE_MonitoringCounter0 *counter);

/**
 * The cell of a counter. It lives as long as the counter; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringCounterCell *TFE_MonitoringGetCellCounter0(TFE_MonitoringCounter0 *counter);

/**
 * A new counter with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteCounter1`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringCounter1 *TFE_MonitoringNewCounter1(const char *name,
                                                         TF_Status *status,
                                                         const char *description,
                                                         const char *label1);

/**
 * Frees a counter, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteCounter1(TFE_MonitoringCounter1 *counter);

/**
 * The cell of a counter for these labels. It lives as long as the counter; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringCounterCell *TFE_MonitoringGetCellCounter1(TFE_MonitoringCounter1 *counter,
                                                                const char *label1);

/**
 * A new counter with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteCounter2`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringCounter2 *TFE_MonitoringNewCounter2(const char *name,
                                                         TF_Status *status,
                                                         const char *description,
                                                         const char *label1,
                                                         const char *label2);

/**
 * Frees a counter, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteCounter2(TFE_MonitoringCounter2 *counter);

/**
 * The cell of a counter for these labels. It lives as long as the counter; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringCounterCell *TFE_MonitoringGetCellCounter2(TFE_MonitoringCounter2 *counter,
                                                                const char *label1,
                                                                const char *label2);

/**
 * Sets a gauge.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringIntGaugeCellSet(TFE_MonitoringIntGaugeCell *cell, int64_t value);

/**
 * What a gauge was set to; 0 at first and for NULL.
 */
TF_CAPI_EXPORT extern int64_t TFE_MonitoringIntGaugeCellValue(TFE_MonitoringIntGaugeCell *cell);

/**
 * A new gauge without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteIntGauge0`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringIntGauge0 *TFE_MonitoringNewIntGauge0(const char *name,
                                                           TF_Status *out_status,
                                                           const char *description);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteIntGauge0(TFE_MonitoringIntGauge0 *gauge);

/**
 * The cell of a gauge. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringIntGaugeCell *TFE_MonitoringGetCellIntGauge0(TFE_MonitoringIntGauge0 *gauge);

/**
 * A new gauge with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteIntGauge1`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringIntGauge1 *TFE_MonitoringNewIntGauge1(const char *name,
                                                           TF_Status *out_status,
                                                           const char *description,
                                                           const char *label1);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteIntGauge1(TFE_MonitoringIntGauge1 *gauge);

/**
 * The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringIntGaugeCell *TFE_MonitoringGetCellIntGauge1(TFE_MonitoringIntGauge1 *gauge,
                                                                  const char *label1);

/**
 * A new gauge with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteIntGauge2`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringIntGauge2 *TFE_MonitoringNewIntGauge2(const char *name,
                                                           TF_Status *out_status,
                                                           const char *description,
                                                           const char *label1,
                                                           const char *label2);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteIntGauge2(TFE_MonitoringIntGauge2 *gauge);

/**
 * The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringIntGaugeCell *TFE_MonitoringGetCellIntGauge2(TFE_MonitoringIntGauge2 *gauge,
                                                                  const char *label1,
                                                                  const char *label2);

/**
 * Sets a gauge.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringBoolGaugeCellSet(TFE_MonitoringBoolGaugeCell *cell, bool value);

/**
 * What a gauge was set to; false at first and for NULL.
 */
TF_CAPI_EXPORT extern bool TFE_MonitoringBoolGaugeCellValue(TFE_MonitoringBoolGaugeCell *cell);

/**
 * A new gauge without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteBoolGauge0`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringBoolGauge0 *TFE_MonitoringNewBoolGauge0(const char *name,
                                                             TF_Status *out_status,
                                                             const char *description);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteBoolGauge0(TFE_MonitoringBoolGauge0 *gauge);

/**
 * The cell of a gauge. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringBoolGaugeCell *TFE_MonitoringGetCellBoolGauge0(TFE_MonitoringBoolGauge0 *gauge);

/**
 * A new gauge with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteBoolGauge1`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringBoolGauge1 *TFE_MonitoringNewBoolGauge1(const char *name,
                                                             TF_Status *out_status,
                                                             const char *description,
                                                             const char *label1);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteBoolGauge1(TFE_MonitoringBoolGauge1 *gauge);

/**
 * The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringBoolGaugeCell *TFE_MonitoringGetCellBoolGauge1(TFE_MonitoringBoolGauge1 *gauge,
                                                                    const char *label1);

/**
 * A new gauge with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteBoolGauge2`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringBoolGauge2 *TFE_MonitoringNewBoolGauge2(const char *name,
                                                             TF_Status *out_status,
                                                             const char *description,
                                                             const char *label1,
                                                             const char *label2);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteBoolGauge2(TFE_MonitoringBoolGauge2 *gauge);

/**
 * The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringBoolGaugeCell *TFE_MonitoringGetCellBoolGauge2(TFE_MonitoringBoolGauge2 *gauge,
                                                                    const char *label1,
                                                                    const char *label2);

/**
 * Sets a gauge to a copy of the text; ignored for NULL.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringStringGaugeCellSet(TFE_MonitoringStringGaugeCell *cell, const char *value);

/**
 * Fills `buf`, which must be empty, with what a gauge was set to; nothing at first.
 */
TF_CAPI_EXPORT extern
void TFE_MonitoringStringGaugeCellValue(TFE_MonitoringStringGaugeCell *cell,
                                        TF_Buffer *buf);

/**
 * A new gauge without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge0`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGauge0 *TFE_MonitoringNewStringGauge0(const char *name,
                                                                 TF_Status *out_status,
                                                                 const char *description);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteStringGauge0(TFE_MonitoringStringGauge0 *gauge);

/**
 * The cell of a gauge. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGaugeCell *TFE_MonitoringGetCellStringGauge0(TFE_MonitoringStringGauge0 *gauge);

/**
 * A new gauge with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge1`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGauge1 *TFE_MonitoringNewStringGauge1(const char *name,
                                                                 TF_Status *out_status,
                                                                 const char *description,
                                                                 const char *label1);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteStringGauge1(TFE_MonitoringStringGauge1 *gauge);

/**
 * The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGaugeCell *TFE_MonitoringGetCellStringGauge1(TFE_MonitoringStringGauge1 *gauge,
                                                                        const char *label1);

/**
 * A new gauge with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge2`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGauge2 *TFE_MonitoringNewStringGauge2(const char *name,
                                                                 TF_Status *out_status,
                                                                 const char *description,
                                                                 const char *label1,
                                                                 const char *label2);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteStringGauge2(TFE_MonitoringStringGauge2 *gauge);

/**
 * The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGaugeCell *TFE_MonitoringGetCellStringGauge2(TFE_MonitoringStringGauge2 *gauge,
                                                                        const char *label1,
                                                                        const char *label2);

/**
 * A new gauge with three labels. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge3`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGauge3 *TFE_MonitoringNewStringGauge3(const char *name,
                                                                 TF_Status *out_status,
                                                                 const char *description,
                                                                 const char *label1,
                                                                 const char *label2,
                                                                 const char *label3);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteStringGauge3(TFE_MonitoringStringGauge3 *gauge);

/**
 * The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGaugeCell *TFE_MonitoringGetCellStringGauge3(TFE_MonitoringStringGauge3 *gauge,
                                                                        const char *label1,
                                                                        const char *label2,
                                                                        const char *label3);

/**
 * A new gauge with four labels. Names need not be unique. Free it with `TFE_MonitoringDeleteStringGauge4`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGauge4 *TFE_MonitoringNewStringGauge4(const char *name,
                                                                 TF_Status *out_status,
                                                                 const char *description,
                                                                 const char *label1,
                                                                 const char *label2,
                                                                 const char *label3,
                                                                 const char *label4);

/**
 * Frees a gauge, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteStringGauge4(TFE_MonitoringStringGauge4 *gauge);

/**
 * The cell of a gauge for these labels. It lives as long as the gauge; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringStringGaugeCell *TFE_MonitoringGetCellStringGauge4(TFE_MonitoringStringGauge4 *gauge,
                                                                        const char *label1,
                                                                        const char *label2,
                                                                        const char *label3,
                                                                        const char *label4);

/**
 * Adds a value to a sampler.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringSamplerCellAdd(TFE_MonitoringSamplerCell *cell, double value);

/**
 * Fills `buf`, which must be empty, with a serialized `HistogramProto` of the values that were added.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringSamplerCellValue(TFE_MonitoringSamplerCell *cell, TF_Buffer *buf);

/**
 * New buckets that end at `scale`, `scale * growth_factor`, `scale * growth_factor^2` and so on, `bucket_count` of them, and
 * one for what is greater. A value at the end of a bucket belongs to the next. Free them with `TFE_MonitoringDeleteBuckets`.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringBuckets *TFE_MonitoringNewExponentialBuckets(double scale,
                                                                  double growth_factor,
                                                                  int bucket_count);

/**
 * Frees buckets; samplers made with them keep what they need. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteBuckets(TFE_MonitoringBuckets *buckets);

/**
 * A new sampler without labels. Names need not be unique. Free it with `TFE_MonitoringDeleteSampler0`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringSampler0 *TFE_MonitoringNewSampler0(const char *name,
                                                         TFE_MonitoringBuckets *buckets,
                                                         TF_Status *out_status,
                                                         const char *description);

/**
 * Frees a sampler, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteSampler0(TFE_MonitoringSampler0 *sampler);

/**
 * The cell of a sampler. It lives as long as the sampler; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringSamplerCell *TFE_MonitoringGetCellSampler0(TFE_MonitoringSampler0 *sampler);

/**
 * A new sampler with one label. Names need not be unique. Free it with `TFE_MonitoringDeleteSampler1`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringSampler1 *TFE_MonitoringNewSampler1(const char *name,
                                                         TFE_MonitoringBuckets *buckets,
                                                         TF_Status *out_status,
                                                         const char *description,
                                                         const char *label1);

/**
 * Frees a sampler, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteSampler1(TFE_MonitoringSampler1 *sampler);

/**
 * The cell of a sampler for these labels. It lives as long as the sampler; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringSamplerCell *TFE_MonitoringGetCellSampler1(TFE_MonitoringSampler1 *sampler,
                                                                const char *label1);

/**
 * A new sampler with two labels. Names need not be unique. Free it with `TFE_MonitoringDeleteSampler2`. NULL with
 * INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringSampler2 *TFE_MonitoringNewSampler2(const char *name,
                                                         TFE_MonitoringBuckets *buckets,
                                                         TF_Status *out_status,
                                                         const char *description,
                                                         const char *label1,
                                                         const char *label2);

/**
 * Frees a sampler, and its cells; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TFE_MonitoringDeleteSampler2(TFE_MonitoringSampler2 *sampler);

/**
 * The cell of a sampler for these labels. It lives as long as the sampler; any thread may use it. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TFE_MonitoringSamplerCell *TFE_MonitoringGetCellSampler2(TFE_MonitoringSampler2 *sampler,
                                                                const char *label1,
                                                                const char *label2);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_EAGER_C_API_EXPERIMENTAL_H_ */
