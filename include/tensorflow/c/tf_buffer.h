/* Bytes with the function that frees them. Any thread may call any function; which objects threads may share is said
 * at each type, and none may be in use when it is deleted. Text and arrays that are passed in belong to the caller
 * and are read during the call only, unless a comment says otherwise. A function that takes a TF_Status sets it on
 * every call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_TF_BUFFER_H_
#define TENSORFLOW_C_TF_BUFFER_H_

#include <stddef.h>
#include "tensorflow/c/c_api_macros.h"

/**
 * Bytes, most often a serialized message, with the function that frees them. Programs may fill the fields
 * themselves. Not for use by two threads at once.
 */
typedef struct TF_Buffer {
  /**
   * First byte; NULL when there are none.
   */
  const void *data;
  /**
   * Number of bytes.
   */
  size_t length;
  /**
   * Frees `data`; NULL when nothing is to be freed.
   */
  void (*data_deallocator)(void *data, size_t length);
} TF_Buffer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A buffer with a copy of `proto_len` bytes; NULL when memory is out or `proto` is NULL with a length. Free it with
 * `TF_DeleteBuffer`.
 */
TF_CAPI_EXPORT extern TF_Buffer *TF_NewBufferFromString(const void *proto, size_t proto_len);

/**
 * A buffer without bytes. Free it with `TF_DeleteBuffer`.
 */
TF_CAPI_EXPORT extern TF_Buffer *TF_NewBuffer(void);

/**
 * Frees a buffer, and its bytes by its deallocator; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteBuffer(TF_Buffer *buffer);

/**
 * The fields of a buffer, which keeps its bytes.
 */
TF_CAPI_EXPORT extern TF_Buffer TF_GetBuffer(TF_Buffer *buffer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_TF_BUFFER_H_ */
