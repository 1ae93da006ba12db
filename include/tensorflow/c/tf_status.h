/* The outcome of a call, under TensorFlow's own names. A status belongs to who made it: one thread at a time may
 * change it, or be in a call that does; threads may read it at the same time. The functions here cannot fail.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_TF_STATUS_H_
#define TENSORFLOW_C_TF_STATUS_H_

#include "tensorflow/c/c_api_macros.h"
#include "xla/tsl/c/tsl_status.h"

/* The codes under the names that TensorFlow's own functions have for them. */
#define TF_OK TSL_OK
#define TF_CANCELLED TSL_CANCELLED
#define TF_UNKNOWN TSL_UNKNOWN
#define TF_INVALID_ARGUMENT TSL_INVALID_ARGUMENT
#define TF_DEADLINE_EXCEEDED TSL_DEADLINE_EXCEEDED
#define TF_NOT_FOUND TSL_NOT_FOUND
#define TF_ALREADY_EXISTS TSL_ALREADY_EXISTS
#define TF_PERMISSION_DENIED TSL_PERMISSION_DENIED
#define TF_UNAUTHENTICATED TSL_UNAUTHENTICATED
#define TF_RESOURCE_EXHAUSTED TSL_RESOURCE_EXHAUSTED
#define TF_FAILED_PRECONDITION TSL_FAILED_PRECONDITION
#define TF_ABORTED TSL_ABORTED
#define TF_OUT_OF_RANGE TSL_OUT_OF_RANGE
#define TF_UNIMPLEMENTED TSL_UNIMPLEMENTED
#define TF_INTERNAL TSL_INTERNAL
#define TF_UNAVAILABLE TSL_UNAVAILABLE
#define TF_DATA_LOSS TSL_DATA_LOSS
#define TF_PayloadVisitor TSL_PayloadVisitor


/**
 * The outcome of a call.
 */
typedef TSL_Status TF_Status;

/**
 * What a status says.
 */
typedef TSL_Code TF_Code;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A new status, OK. Free it with `TF_DeleteStatus`.
 */
TF_CAPI_EXPORT extern TF_Status *TF_NewStatus(void);

/**
 * Frees a status; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteStatus(TF_Status *s);

/**
 * Sets code and message and drops payloads. NULL for `msg` is an empty message, which is what OK always has.
 */
TF_CAPI_EXPORT extern void TF_SetStatus(TF_Status *s, TF_Code code, const char *msg);

/**
 * Adds a payload, or replaces the one with this key. Has no effect on an OK status.
 */
TF_CAPI_EXPORT extern void TF_SetPayload(TF_Status *s, const char *key, const char *value);

/**
 * Calls `visitor` once for each payload; `capture` is passed on to it. The strings live during the call only.
 */
TF_CAPI_EXPORT extern void TF_ForEachPayload(const TF_Status *s, TSL_PayloadVisitor visitor, void *capture);

/**
 * Sets the status that fits a value of `errno`: its code, and as message `context`, a semicolon and what the system
 * calls the error. 0 gives OK.
 */
TF_CAPI_EXPORT extern void TF_SetStatusFromIOError(TF_Status *s, int error_code, const char *context);

/**
 * The code; OK for NULL.
 */
TF_CAPI_EXPORT extern TF_Code TF_GetCode(const TF_Status *s);

/**
 * The message, valid until the status changes or is deleted; empty for OK and for NULL.
 */
TF_CAPI_EXPORT extern const char *TF_Message(const TF_Status *s);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_TF_STATUS_H_ */
