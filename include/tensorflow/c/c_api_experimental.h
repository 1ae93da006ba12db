/* What bindings use beside c_api.h: settings of compilation, checkpoints without a session, lists of shapes. Any
 * thread may call any function; which objects threads may share is said at each type, and none may be in use when it
 * is deleted. Text and arrays that are passed in belong to the caller and are read during the call only, unless a
 * comment says otherwise. A function that takes a TF_Status sets it on every call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_C_API_EXPERIMENTAL_H_
#define TENSORFLOW_C_C_API_EXPERIMENTAL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"

/**
 * Attributes of a node that no graph has. Not for use by two threads at once.
 */
typedef struct TF_AttrBuilder TF_AttrBuilder;

/**
 * An open checkpoint. Threads may read one at the same time.
 */
typedef struct TF_CheckpointReader TF_CheckpointReader;

/**
 * A shape and an element type.
 */
typedef struct TF_ShapeAndType {
  /**
   * Number of dimensions; -1 for an unknown rank.
   */
  int num_dims;
  /**
   * The extents; -1 for an unknown one.
   */
  int64_t *dims;
  /**
   * The type; 0 for an unknown one.
   */
  TF_DataType dtype;
} TF_ShapeAndType;

/**
 * Shapes and types. One thread at a time may change it.
 */
typedef struct TF_ShapeAndTypeList {
  /**
   * How many there are.
   */
  int num_items;
  /**
   * The shapes and types.
   */
  TF_ShapeAndType *items;
} TF_ShapeAndTypeList;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Sets the level of just-in-time compilation in the configuration of a session: 0 for none. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_EnableXLACompilation(TF_SessionOptions *options, unsigned char enable);

/**
 * Says whether compilation may wait until code has run some times. Returns what was said before.
 */
TF_CAPI_EXPORT extern unsigned char TF_SetXlaEnableLazyCompilation(unsigned char enable);

/**
 * Says whether the level of the process holds for processors too; what a session asks for always does. Returns what was said before.
 */
TF_CAPI_EXPORT extern
unsigned char TF_SetTfXlaCpuGlobalJit(unsigned char enable);

/**
 * Sets the level for sessions that state none: a number, `single-gpu(number)` or `fusible`. Other texts are ignored.
 */
TF_CAPI_EXPORT extern void TF_SetXlaAutoJitMode(const char *mode);

/**
 * Whether such a level is above 0.
 */
TF_CAPI_EXPORT extern unsigned char TF_GetXlaAutoJitEnabled(void);

/**
 * Sets how many operations a part must have to be compiled.
 */
TF_CAPI_EXPORT extern void TF_SetXlaMinClusterSize(int size);

/**
 * Whether constants are to be left as they are.
 */
TF_CAPI_EXPORT extern unsigned char TF_GetXlaConstantFoldingDisabled(void);

/**
 * Says whether constants are to be left as they are.
 */
TF_CAPI_EXPORT extern void TF_SetXlaConstantFoldingDisabled(unsigned char should_enable);

/**
 * A serialized `ConfigProto`: compilation on or off, so many processor devices, one thread between operations. The caller
 * deletes the buffer. NULL when memory is out.
 */
TF_CAPI_EXPORT extern
TF_Buffer *TF_CreateConfig(unsigned char enable_xla_compilation,
                           unsigned char gpu_memory_allow_growth,
                           unsigned int num_cpu_devices);

/**
 * A serialized `RunOptions` that asks for a full trace, or for none. The caller deletes the buffer. NULL when memory is out.
 */
TF_CAPI_EXPORT extern
TF_Buffer *TF_CreateRunOptions(unsigned char enable_full_trace);

/**
 * Opens a checkpoint of either format by its prefix. Free it with `TF_DeleteCheckpointReader`. NULL with NOT_FOUND when there
 * is none, DATA_LOSS when it is damaged.
 */
TF_CAPI_EXPORT extern
TF_CheckpointReader *TF_NewCheckpointReader(const char *filename,
                                                   TF_Status *status);

/**
 * Frees a reader and the names that it gave; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteCheckpointReader(TF_CheckpointReader *reader);

/**
 * 1 if there is a tensor of this name, else 0.
 */
TF_CAPI_EXPORT extern int TF_CheckpointReaderHasTensor(TF_CheckpointReader *reader, const char *name);

/**
 * The name of the tensor with this number, in order of names; it belongs to the reader. NULL when there is none.
 */
TF_CAPI_EXPORT extern const char *TF_CheckpointReaderGetVariable(TF_CheckpointReader *reader, int index);

/**
 * The number of tensors.
 */
TF_CAPI_EXPORT extern int TF_CheckpointReaderSize(TF_CheckpointReader *reader);

/**
 * The element type of a tensor; 0 when there is none of this name.
 */
TF_CAPI_EXPORT extern
TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader *reader,
                                                         const char *name);

/**
 * Writes the extents of a tensor. NOT_FOUND when there is none of this name, INVALID_ARGUMENT unless its rank is `num_dims`.
 */
TF_CAPI_EXPORT extern
void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader *reader,
                                         const char *name,
                                         int64_t *dims,
                                         int num_dims,
                                         TF_Status *status);

/**
 * The rank of a tensor; -1 when there is none of this name.
 */
TF_CAPI_EXPORT extern int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader *reader, const char *name);

/**
 * The tensor of this name; the caller deletes it. NULL with NOT_FOUND when there is none, DATA_LOSS when it is damaged.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TF_CheckpointReaderGetTensor(TF_CheckpointReader *reader,
                                        const char *name,
                                        TF_Status *status);

/**
 * A list of `num_shapes` unknown shapes of unknown types. Free it with `TF_DeleteShapeAndTypeList`. NULL when memory is out.
 */
TF_CAPI_EXPORT extern
TF_ShapeAndTypeList *TF_NewShapeAndTypeList(int num_shapes);

/**
 * Sets a shape; a negative `num_dims` is an unknown rank. Ignored for an index that is none.
 */
TF_CAPI_EXPORT extern
void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList *shape_list,
                                 int index,
                                 const int64_t *dims,
                                 int num_dims);

/**
 * Makes a shape unknown. Ignored for an index that is none.
 */
TF_CAPI_EXPORT extern void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList *shape_list, int index);

/**
 * Sets a type. Ignored for an index that is none.
 */
TF_CAPI_EXPORT extern
void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList *shape_list,
                                 int index,
                                 TF_DataType dtype);

/**
 * Frees a list; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList *shape_list);

/**
 * Frees `num_items` lists, and the array of them, which the library made. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList **shape_list_array, int num_items);

/**
 * The graph as the text of its `GraphDef`, and the text's length. Free the text with `free`. NULL for a NULL graph.
 */
TF_CAPI_EXPORT extern const char *TF_GraphDebugString(TF_Graph *graph, size_t *len);

/**
 * A function as a text with a line per operation, and the text's length. Free the text with `free`. NULL for NULL.
 */
TF_CAPI_EXPORT extern char *TF_FunctionDebugString(TF_Function *func, size_t *len);

/**
 * Fetches what the operation `fifo_queue_dequeue_<tensor_id>` gives; the caller deletes the tensor. NULL with INTERNAL when
 * the session's graph has no such operation.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TF_DequeueNamedTensor(TF_Session *session,
                                 int tensor_id,
                                 TF_Status *status);

/**
 * Feeds `arg_tensor_enqueue_<tensor_id>` with a tensor and runs `fifo_queue_enqueue_<tensor_id>`. INTERNAL when the session's
 * graph lacks one of them.
 */
TF_CAPI_EXPORT extern
void TF_EnqueueNamedTensor(TF_Session *session,
                           int tensor_id,
                           TF_Tensor *tensor,
                           TF_Status *status);

/**
 * Sets a status to INTERNAL with this message.
 */
TF_CAPI_EXPORT extern void TF_MakeInternalErrorStatus(TF_Status *status, const char *errMsg);

/**
 * No attributes yet of a node of an op. Free them with `TF_DeleteAttrBuilder`.
 */
TF_CAPI_EXPORT extern TF_AttrBuilder *TF_NewAttrBuilder(const char *op_name);

/**
 * Frees attributes; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteAttrBuilder(TF_AttrBuilder *builder);

/**
 * Sets an attribute to a type.
 */
TF_CAPI_EXPORT extern
void TF_AttrBuilderSetType(TF_AttrBuilder *builder,
                           const char *attr_name,
                           TF_DataType value);

/**
 * Sets an attribute to a list of types.
 */
TF_CAPI_EXPORT extern
void TF_AttrBuilderSetTypeList(TF_AttrBuilder *builder,
                               const char *attr_name,
                               const TF_DataType *values,
                               int num_values);

/**
 * Whether there is a kernel for these attributes on devices of a type (`CPU`). NOT_FOUND when there is none, INVALID_ARGUMENT
 * when an attribute that decides it is missing.
 */
TF_CAPI_EXPORT extern
void TF_AttrBuilderCheckCanRunOnDevice(TF_AttrBuilder *builder,
                                       const char *device_type,
                                       TF_Status *status);

/**
 * The name of the attribute that counts a list input; it is there for good. NULL with INVALID_ARGUMENT for an index that is
 * none, NOT_FOUND for an input that is no such list, and for an unknown op.
 */
TF_CAPI_EXPORT extern
const char *TF_GetNumberAttrForOpListInput(const char *op_name,
                                           int input_index,
                                           TF_Status *status);

/**
 * 1 if an op has state, else 0. NOT_FOUND for an unknown op.
 */
TF_CAPI_EXPORT extern int TF_OpIsStateful(const char *op_type, TF_Status *status);

/**
 * Nothing needs to be set up by a program's `main`: it is ignored.
 */
TF_CAPI_EXPORT extern void TF_InitMain(const char *usage, int *argc, char ***argv);

/**
 * A port that no program listens on at the moment; 0 when there is none.
 */
TF_CAPI_EXPORT extern int TF_PickUnusedPortOrDie(void);

/**
 * Whether colocations with nodes that the message does not have are errors.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions *opts,
                                                              unsigned char enable);

/**
 * Takes a function out of a graph's library. INVALID_ARGUMENT when there is none of this name.
 */
TF_CAPI_EXPORT extern void TF_GraphRemoveFunction(TF_Graph *g, const char *func_name, TF_Status *status);

/**
 * Loads a plug-in that adds file systems, and registers its schemes for this process; the plug-in stays loaded for good.
 * All schemes that can be are registered, also when there is an error, which is the first one.
 *
 * NOT_FOUND when it cannot be loaded or has no `TF_InitPlugin`; FAILED_PRECONDITION where required functions are missing or
 * are of another version; ALREADY_EXISTS for a scheme that is taken.
 */
TF_CAPI_EXPORT extern
void TF_RegisterFilesystemPlugin(const char *plugin_filename,
                                 TF_Status *status);

/**
 * Loads a library that adds devices (`SE_InitPlugin`), a graph optimizer (`TF_InitGraph`), kernels (`TF_InitKernel`) or a
 * profiler (`TF_InitProfiler`); each function is called once, however often the library is loaded. It stays loaded for
 * good. Devices are those of sessions and contexts that are made later. Free the handle with
 * `TF_DeletePluggableDeviceLibraryHandle`.
 *
 * NULL with NOT_FOUND when it cannot be loaded, with FAILED_PRECONDITION or the plug-in's own error when it does not register
 * itself well.
 */
TF_CAPI_EXPORT extern
TF_Library *TF_LoadPluggableDeviceLibrary(const char *library_filename,
                                          TF_Status *status);

/**
 * Frees a handle; the library stays loaded. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeletePluggableDeviceLibraryHandle(TF_Library *lib_handle);

/**
 * A serialized `ServerDef` of one in text form. Free it with `TF_DeleteBuffer`. NULL with INTERNAL for other text.
 */
TF_CAPI_EXPORT extern TF_Buffer *TFE_GetServerDef(const char *text_proto, TF_Status *status);

/**
 * Makes the context the task that a serialized `ServerDef` says, as `TFE_ContextSetServerDef` does, so that its collective
 * ops have their group there. It has no effect on a context that is a task already.
 */
TF_CAPI_EXPORT extern
void TFE_EnableCollectiveOps(TFE_Context *ctx,
                             const void *proto,
                             size_t proto_len,
                             TF_Status *status);

/**
 * Ends the collective ops that wait for others, and all later ones, with the error in `status`, which is left as it is. The
 * first error stays, until the context becomes another task. An OK status ends none.
 */
TF_CAPI_EXPORT extern
void TFE_AbortCollectiveOps(TFE_Context *ctx,
                            TF_Status *status);

/**
 * Whether a process that takes part in collective ops answers. INTERNAL, as none does.
 */
TF_CAPI_EXPORT extern
void TFE_CollectiveOpsCheckPeerHealth(TFE_Context *ctx,
                                      const char *task,
                                      int64_t timeout_in_ms,
                                      TF_Status *status);

/**
 * Infers the shapes of a call's outputs from those of its inputs, and from the values of inputs where `input_tensors` has
 * them: it may be NULL, and have NULLs. `input_tensor_as_shapes`, `input_resource_shapes_and_types` and
 * `output_resource_shapes_and_types` are not used. Free what is put in `output_shapes` with `TF_DeleteShapeAndTypeList`.
 *
 * INVALID_ARGUMENT when shapes or attributes do not fit the op.
 */
TF_CAPI_EXPORT extern
void TFE_InferShapes(TFE_Op *op,
                     TF_ShapeAndTypeList *input_shapes,
                     TF_Tensor**input_tensors,
                     TF_ShapeAndTypeList *input_tensor_as_shapes,
                     TF_ShapeAndTypeList **input_resource_shapes_and_types,
                     TF_ShapeAndTypeList**output_shapes,
                     TF_ShapeAndTypeList ***output_resource_shapes_and_types,
                     TF_Status *status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_C_API_EXPERIMENTAL_H_ */
