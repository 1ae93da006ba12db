#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_NEXT_PLUGGABLE_DEVICE_C_TF_RENDEZVOUS_C_API_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_NEXT_PLUGGABLE_DEVICE_C_TF_RENDEZVOUS_C_API_H_

/* Where kernels of one step leave tensors for each other under keys, as functions that a kernel can call. */

#include <stdbool.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What copies tensors of a device; NULL on a CPU. */
typedef struct TF_DeviceContext TF_DeviceContext;

typedef struct TFDevice_AllocatorAttributes {
  uint32_t value;
  int32_t scope_id;
} TFDevice_AllocatorAttributes;

typedef struct TFE_CancellationManager TFE_CancellationManager;

typedef struct TF_RendezvousArgsStruct {
  TF_DeviceContext *device_context;
  TFDevice_AllocatorAttributes alloc_attrs;
  TFE_CancellationManager *cancellation_manager;
} TF_RendezvousArgsStruct;

/* A key: `source device;incarnation;target device;name;frame:iteration`. */
typedef struct TF_RendezvousParsedKey {
  char *full_key;
  uint32_t full_key_size;
} TF_RendezvousParsedKey;

/* Leaves a tensor, which stays the caller's, or word that it is dead. `status` is set. */
typedef struct TF_RendezvousSend_Params {
  const TF_RendezvousParsedKey *key;
  const TF_RendezvousArgsStruct *args;
  TF_Tensor *tensor;
  bool is_dead;
  TF_Status *status;
} TF_RendezvousSend_Params;

typedef void (*TF_RendezvousSend_Function)(void *, TF_RendezvousSend_Params *);

/* What a receiver is called with; valid during the call. */
typedef struct TF_RendezvousDoneCallback_Params {
  void *context;
  const TF_Status *status;
  const TF_Tensor *tensor;
  bool is_dead;
} TF_RendezvousDoneCallback_Params;

typedef void (*TF_RendezvousDoneCallback_Function)(void *, TF_RendezvousDoneCallback_Params *);

typedef struct TF_RendezvousDoneCallbackImpl {
  void *context;
  TF_RendezvousDoneCallback_Function callback;
} TF_RendezvousDoneCallbackImpl;

/* Asks for a tensor. `on_done.callback` is called once, with `on_done.context`, on any thread, also before the function
 * returns. */
typedef struct TF_RendezvousAsyncRecv_Params {
  void *context;
  const TF_RendezvousParsedKey *key;
  const TF_RendezvousArgsStruct *args;
  TF_RendezvousDoneCallbackImpl on_done;
} TF_RendezvousAsyncRecv_Params;

typedef void (*TF_RendezvousAsyncRecv_Function)(void *, TF_RendezvousAsyncRecv_Params *);

/* Turns all receivers of the step away with this error. */
typedef void (*TF_RendezvousStartAbort_Function)(void *context, const TF_Status *);

/* The place, and the functions that take it as their first argument. Valid during the kernel's run. */
typedef struct TF_RendezvousThunk {
  void *rendezvous;
  TF_RendezvousSend_Function send_func;
  TF_RendezvousAsyncRecv_Function async_recv_func;
  TF_RendezvousStartAbort_Function start_abort_func;
} TF_RendezvousThunk;

#ifdef __cplusplus
}
#endif

#endif /* TENSORFLOW_CORE_COMMON_RUNTIME_NEXT_PLUGGABLE_DEVICE_C_TF_RENDEZVOUS_C_API_H_ */
