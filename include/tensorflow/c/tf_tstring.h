/* String elements through functions; the inline ones of ctstring.h do the same without calls. Any thread may call
 * any function; which objects threads may share is said at each type, and none may be in use when it is deleted.
 * Text and arrays that are passed in belong to the caller and are read during the call only, unless a comment says
 * otherwise. A function that takes a TF_Status sets it on every call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/core/platform/ctstring.h"

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes the memory at `t` an empty string, whatever it held.
 */
TF_CAPI_EXPORT extern void TF_StringInit(TF_TString *t);

/**
 * Makes `dst` a copy of `size` bytes, freeing what it owned.
 */
TF_CAPI_EXPORT extern void TF_StringCopy(TF_TString *dst, const char *src, size_t size);

/**
 * Makes `dst` a view of `size` bytes, which must outlive it, freeing what it owned.
 */
TF_CAPI_EXPORT extern void TF_StringAssignView(TF_TString *dst, const char *src, size_t size);

/**
 * The bytes of a string, which belong to it; NULL for NULL. Those of the small and large forms end with a zero byte.
 */
TF_CAPI_EXPORT extern const char *TF_StringGetDataPointer(const TF_TString *tstr);

/**
 * The form of a string; small for NULL.
 */
TF_CAPI_EXPORT extern TF_TString_Type TF_StringGetType(const TF_TString *str);

/**
 * The number of bytes; 0 for NULL.
 */
TF_CAPI_EXPORT extern size_t TF_StringGetSize(const TF_TString *tstr);

/**
 * The number of bytes that fit without new memory; 0 for views and for NULL.
 */
TF_CAPI_EXPORT extern size_t TF_StringGetCapacity(const TF_TString *str);

/**
 * Frees what a string owns and makes it empty; other forms stay as they are, except that a large string may be
 * used again after it.
 */
TF_CAPI_EXPORT extern void TF_StringDealloc(TF_TString *tstr);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_TF_TSTRING_H_ */
