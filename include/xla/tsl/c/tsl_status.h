/* The outcome of a call. A status belongs to who made it: one thread at a time may change it, or be in a call that
 * does; threads may read it at the same time. The functions here cannot fail.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef XLA_TSL_C_TSL_STATUS_H_
#define XLA_TSL_C_TSL_STATUS_H_

/**
 * What a status says.
 */
typedef enum TSL_Code {
  /**
   * Not an error.
   */
  TSL_OK = 0,
  /**
   * The operation was cancelled, typically by the caller.
   */
  TSL_CANCELLED = 1,
  /**
   * An error without a better code.
   */
  TSL_UNKNOWN = 2,
  /**
   * An argument is wrong, whatever the state of the system.
   */
  TSL_INVALID_ARGUMENT = 3,
  /**
   * Time ran out before the operation ended.
   */
  TSL_DEADLINE_EXCEEDED = 4,
  /**
   * Something that was asked for does not exist.
   */
  TSL_NOT_FOUND = 5,
  /**
   * Something that was to be made exists.
   */
  TSL_ALREADY_EXISTS = 6,
  /**
   * The caller may not do this.
   */
  TSL_PERMISSION_DENIED = 7,
  /**
   * The caller did not say who it is.
   */
  TSL_UNAUTHENTICATED = 16,
  /**
   * Memory, space or a quota is used up.
   */
  TSL_RESOURCE_EXHAUSTED = 8,
  /**
   * The system is not in the state that the operation needs.
   */
  TSL_FAILED_PRECONDITION = 9,
  /**
   * The operation was given up, typically because of another one.
   */
  TSL_ABORTED = 10,
  /**
   * A value lies beyond the valid range; an iterator is at its end.
   */
  TSL_OUT_OF_RANGE = 11,
  /**
   * The operation is not implemented.
   */
  TSL_UNIMPLEMENTED = 12,
  /**
   * An invariant of the library does not hold.
   */
  TSL_INTERNAL = 13,
  /**
   * A service is not available now; trying again later may help.
   */
  TSL_UNAVAILABLE = 14,
  /**
   * Data was lost or is corrupt.
   */
  TSL_DATA_LOSS = 15,
} TSL_Code;

/**
 * The outcome of a call: a code, a message, and payloads by key. The caller owns it; one thread at a time may use it.
 */
typedef struct TSL_Status TSL_Status;

/**
 * Called with each payload's key and value, and with what the caller gave to be passed on.
 */
typedef void (*TSL_PayloadVisitor)(const char *key, const char *value, void *capture);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A new status, OK. Free it with `TSL_DeleteStatus`.
 */
extern TSL_Status *TSL_NewStatus(void);

/**
 * Frees a status; NULL is ignored.
 */
extern void TSL_DeleteStatus(TSL_Status *status);

/**
 * Sets code and message and drops payloads. NULL for `msg` is an empty message, which is what OK always has.
 */
extern void TSL_SetStatus(TSL_Status *s, TSL_Code code, const char *msg);

/**
 * Adds a payload, or replaces the one with this key. Has no effect on an OK status.
 */
extern void TSL_SetPayload(TSL_Status *s, const char *key, const char *value);

/**
 * Calls `visitor` once for each payload; `capture` is passed on to it. The strings live during the call only.
 */
extern void TSL_ForEachPayload(const TSL_Status *s, TSL_PayloadVisitor visitor, void *capture);

/**
 * Sets the status that fits a value of `errno`: its code, and as message `context`, a semicolon and what the system
 * calls the error. 0 gives OK.
 */
extern void TSL_SetStatusFromIOError(TSL_Status *s, int error_code, const char *context);

/**
 * The code; OK for NULL.
 */
extern TSL_Code TSL_GetCode(const TSL_Status *s);

/**
 * The message, valid until the status changes or is deleted; empty for OK and for NULL.
 */
extern const char *TSL_Message(const TSL_Status *s);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*XLA_TSL_C_TSL_STATUS_H_ */
