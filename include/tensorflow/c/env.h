/* Files, time, threads and shared libraries. Any thread may call any function; which objects threads may share is
 * said at each type, and none may be in use when it is deleted. Text and arrays that are passed in belong to the
 * caller and are read during the call only, unless a comment says otherwise. A function that takes a TF_Status sets
 * it on every call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_ENV_H_
#define TENSORFLOW_C_ENV_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

/**
 * Texts that are read one after the other. Not for use by two threads at once.
 */
typedef struct TF_StringStream TF_StringStream;

/**
 * A thread that was started. One thread joins it, once.
 */
typedef struct TF_Thread TF_Thread;

/**
 * A file that is being written. Not for use by two threads at once.
 */
typedef struct TF_WritableFileHandle TF_WritableFileHandle;

/**
 * How a thread is started.
 */
typedef struct TF_ThreadOptions {
  /**
   * Bytes of its stack; 0 for the usual number.
   */
  size_t stack_size;
  /**
   * Bytes of the guard around its stack; 0 for the usual number. It has no effect here.
   */
  size_t guard_size;
  /**
   * The memory node it should run on; -1 for any. It has no effect here.
   */
  int numa_node;
} TF_ThreadOptions;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a folder in an existing one. ALREADY_EXISTS when there is something of that name.
 */
TF_CAPI_EXPORT extern void TF_CreateDir(const char *dirname, TF_Status *status);

/**
 * Deletes an empty folder.
 */
TF_CAPI_EXPORT extern void TF_DeleteDir(const char *dirname, TF_Status *status);

/**
 * Deletes a folder with all that it holds, or a file. Goes on after an error, returns the first one, and writes how many
 * files and folders are left.
 */
TF_CAPI_EXPORT extern
void TF_DeleteRecursively(const char *dirname,
                          int64_t *undeleted_file_count,
                          int64_t *undeleted_dir_count,
                          TF_Status *status);

/**
 * Writes what is known of a file or folder. NOT_FOUND when there is none.
 */
TF_CAPI_EXPORT extern void TF_FileStat(const char *filename, TF_FileStatistics *stats, TF_Status *status);

/**
 * Creates a file, or empties the one that is there. Close it with `TF_CloseWritableFile`. `*handle` is NULL after an error.
 */
TF_CAPI_EXPORT extern
void TF_NewWritableFile(const char *filename,
                        TF_WritableFileHandle**handle,
                        TF_Status *status);

/**
 * Hands what was written to the system, closes the file and frees the handle, also after an error. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_CloseWritableFile(TF_WritableFileHandle *handle, TF_Status *status);

/**
 * Hands what was written to the system, and makes it survive a crash of the machine.
 */
TF_CAPI_EXPORT extern void TF_SyncWritableFile(TF_WritableFileHandle *handle, TF_Status *status);

/**
 * Hands what was written to the system.
 */
TF_CAPI_EXPORT extern void TF_FlushWritableFile(TF_WritableFileHandle *handle, TF_Status *status);

/**
 * Adds `length` bytes to a file.
 */
TF_CAPI_EXPORT extern
void TF_AppendWritableFile(TF_WritableFileHandle *handle,
                           const char *data,
                           size_t length,
                           TF_Status *status);

/**
 * Deletes a file.
 */
TF_CAPI_EXPORT extern void TF_DeleteFile(const char *filename, TF_Status *status);

/**
 * Writes the address of the next text, which belongs to the stream, and returns true; false, and NULL, after the last one.
 */
TF_CAPI_EXPORT extern
bool TF_StringStreamNext(TF_StringStream *list,
                         const char**result);

/**
 * Frees a stream and its texts; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_StringStreamDone(TF_StringStream *list);

/**
 * The names in a folder, sorted. Free them with `TF_StringStreamDone`, also after an error, when there are none: NOT_FOUND when
 * there is no such folder.
 */
TF_CAPI_EXPORT extern
TF_StringStream *TF_GetChildren(const char *filename,
                                       TF_Status *status);

/**
 * The folder for files that are not kept, with a slash at its end, if there is one that can be used: what TEST_TMPDIR, TMPDIR
 * or TMP names, or `/tmp`. Free the stream with `TF_StringStreamDone`.
 */
TF_CAPI_EXPORT extern
TF_StringStream *TF_GetLocalTempDirectories(void);

/**
 * Creates an empty file whose name nothing else has, and returns its path, with a point and `extension` at the end unless
 * that is empty. Free the text with `free`. NULL when that fails.
 */
TF_CAPI_EXPORT extern
char *TF_GetTempFileName(const char *extension);

/**
 * Nanoseconds since 1970.
 */
TF_CAPI_EXPORT extern uint64_t TF_NowNanos(void);

/**
 * Microseconds since 1970.
 */
TF_CAPI_EXPORT extern uint64_t TF_NowMicros(void);

/**
 * Seconds since 1970.
 */
TF_CAPI_EXPORT extern uint64_t TF_NowSeconds(void);

/**
 * Writes the usual options. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DefaultThreadOptions(TF_ThreadOptions *options);

/**
 * Starts a thread that calls `work_func` with `param`. NULL options are the usual ones. End it with `TF_JoinThread`. NULL when
 * there is no function to call, or no thread can be had.
 */
TF_CAPI_EXPORT extern
TF_Thread *TF_StartThread(const TF_ThreadOptions *options,
                                 const char *thread_name,
                                 void (*work_func)(void*),
                                 void *param);

/**
 * Waits until a thread has ended, and frees the handle. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_JoinThread(TF_Thread *thread);

/**
 * Loads a shared library, which stays loaded: the handle is not to be freed. NULL with NOT_FOUND, and what the system says, when it cannot be loaded.
 */
TF_CAPI_EXPORT extern
void *TF_LoadSharedLibrary(const char *library_filename,
                           TF_Status *status);

/**
 * The address of a symbol in a library that `TF_LoadSharedLibrary` gave, valid as long as the process. NULL with NOT_FOUND when it has none of this name.
 */
TF_CAPI_EXPORT extern
void *TF_GetSymbolFromLibrary(void *handle,
                              const char *symbol_name,
                              TF_Status *status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_ENV_H_ */
