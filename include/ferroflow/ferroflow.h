/* Functions of this library beyond the TensorFlow C API. Their names start with FF_. */
#ifndef FERROFLOW_FERROFLOW_H_
#define FERROFLOW_FERROFLOW_H_

#include <stddef.h>

#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Compiles a small kernel for this processor, runs it and compares the result; compiles it for NVPTX.
 * status: OK; UNIMPLEMENTED in a library without LLVM; PERMISSION_DENIED where the system allows no compiled code;
 * INTERNAL with what went wrong. */
extern void FF_CodegenSelfTest(TF_Status* status);

/* Compiles a signature of a SavedModel ahead of time: writes prefix.o and prefix.h (and prefix.weights, if asked for), which
 * link with libferroflow_aot.a into programs that need no TensorFlow.
 * tags: those of the meta graph, as "serve". signature: "serving_default" if NULL. options: words of the command
 * `ferroflow compile`, NULL for none: --name NAME, --shape INPUT=2,3, --extent N, --weights side, --target TRIPLE, --cpu NAME.
 * status: INVALID_ARGUMENT for inputs without fixed extents and for wrong options; NOT_FOUND for a model or signature that does
 * not exist; UNIMPLEMENTED, naming the node, for what cannot be compiled, and in a library without LLVM. */
extern void FF_CompileSavedModel(const char* directory, const char* const* tags, int num_tags, const char* signature,
                                 const char* options, const char* prefix, TF_Status* status);

/* The same for part of a GraphDef of `length` bytes: from the tensors feeds to the tensors fetches, each "node" or
 * "node:output".
 * status: also INVALID_ARGUMENT for bytes that are no GraphDef. */
extern void FF_CompileGraphDef(const void* graph_def, size_t length, const char* const* feeds, int num_feeds,
                               const char* const* fetches, int num_fetches, const char* options, const char* prefix,
                               TF_Status* status);

/* Writes the record of a run as a trace that Perfetto and chrome://tracing open: JSON, one process for each device, one
 * row for each thread, one event for each node.
 *
 * run_metadata: what TF_SessionRun gave for options with a trace level. trace: an empty buffer, which is filled; the
 * caller deletes both. Any thread may call this; the buffers are used during the call only.
 * status: INVALID_ARGUMENT for NULL, a buffer that is not empty, and bytes that are no RunMetadata; FAILED_PRECONDITION
 * for a run that was not traced. */
extern void FF_RunMetadataToTrace(const TF_Buffer* run_metadata, TF_Buffer* trace, TF_Status* status);

/* Writes the record of a run where TensorBoard's profiler looks: LOGDIR/plugins/profile/RUN/HOST.xplane.pb. Folders
 * are made, a file of that name is replaced.
 *
 * logdir: on any file system that the library knows. run: one name, without slashes; NULL or "" for the time in
 * microseconds. Any thread may call this; the arguments are used during the call only.
 * status: INVALID_ARGUMENT for NULL, bytes that are no RunMetadata, and a wrong run; FAILED_PRECONDITION for a run that
 * was not traced; the file system's own error when writing fails. */
extern void FF_WriteProfile(const TF_Buffer* run_metadata, const char* logdir, const char* run, TF_Status* status);

#ifdef __cplusplus
}
#endif

#endif /* FERROFLOW_FERROFLOW_H_ */
