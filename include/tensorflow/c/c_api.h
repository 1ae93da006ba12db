/* Graphs, operations, functions, sessions, SavedModels, libraries. Handles are pointers to what only the library
 * sees into; deleting NULL is harmless. Any thread may call any function; which objects threads may share is said at
 * each type, and none may be in use when it is deleted. Text and arrays that are passed in belong to the caller and
 * are read during the call only, unless a comment says otherwise. A function that takes a TF_Status sets it on every
 * call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_C_API_H_
#define TENSORFLOW_C_C_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_attrtype.h"
#include "tensorflow/c/tf_buffer.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tstring.h"

/**
 * API definitions by op. Any thread may use it at any time.
 */
typedef struct TF_ApiDefMap TF_ApiDefMap;

/**
 * A session with a graph of its own. Any number of threads may run it at the same time.
 */
typedef struct TF_DeprecatedSession TF_DeprecatedSession;

/**
 * Devices as they were when the list was made. Threads may read one list at the same time.
 */
typedef struct TF_DeviceList TF_DeviceList;

/**
 * A function: operations with inputs and outputs, to be used as an op of its name. Threads may read one function at the
 * same time.
 */
typedef struct TF_Function TF_Function;

/**
 * Options of functions: there are none yet. Threads may read them at the same time.
 */
typedef struct TF_FunctionOptions TF_FunctionOptions;

/**
 * A graph of operations. Any thread may use it at any time, also while sessions run it.
 */
typedef struct TF_Graph TF_Graph;

/**
 * How to import. One thread at a time may change it.
 */
typedef struct TF_ImportGraphDefOptions TF_ImportGraphDefOptions;

/**
 * What an import gave. It owns the arrays that its functions give out. Threads may read it at the same time.
 */
typedef struct TF_ImportGraphDefResults TF_ImportGraphDefResults;

/**
 * A library that was loaded. Threads may read one handle at the same time.
 */
typedef struct TF_Library TF_Library;

/**
 * A node of a graph. It belongs to the graph and is valid until the graph and the sessions on it are deleted. Any
 * thread may use it.
 */
typedef struct TF_Operation TF_Operation;

/**
 * An operation under construction. One thread at a time may use it.
 */
typedef struct TF_OperationDescription TF_OperationDescription;

/**
 * An in-process server. There is none yet. Any thread may use it at any time.
 */
typedef struct TF_Server TF_Server;

/**
 * Runs a graph. Any number of threads may run it at the same time, also while the graph grows; only deleting it must
 * wait until no call uses it any more.
 */
typedef struct TF_Session TF_Session;

/**
 * How sessions are configured. One thread at a time may change it; sessions keep copies.
 */
typedef struct TF_SessionOptions TF_SessionOptions;

/**
 * An output of an operation.
 */
typedef struct TF_Output {
  /**
   * The operation.
   */
  TF_Operation *oper;
  /**
   * Which of its outputs, from 0.
   */
  int index;
} TF_Output;
/**
 * No output.
 */
#define TF_Output_NONE (TF_Output){ .oper = (null_mut){  }, .index = 0 }

/**
 * An input of an operation.
 */
typedef struct TF_Input {
  /**
   * The operation.
   */
  TF_Operation *oper;
  /**
   * Which of its inputs, from 0.
   */
  int index;
} TF_Input;

/**
 * What kind of value an attribute has, and how much room it needs.
 */
typedef struct TF_AttrMetadata {
  /**
   * 1 for a list, 0 for a single value.
   */
  unsigned char is_list;
  /**
   * Number of elements of a list; -1 for a single value.
   */
  int64_t list_size;
  /**
   * Kind of the value, or of the elements of a list.
   */
  TF_AttrType type;
  /**
   * Bytes of a string, or of all strings of a list; dimensions of a shape (-1 for an unknown rank), or of all shapes of
   * a list; -1 for other kinds.
   */
  int64_t total_size;
} TF_AttrMetadata;

/**
 * A loop under construction. The caller builds `cond_graph` and `body_graph` from their inputs, sets `cond_output`,
 * `body_outputs` and `name`, and calls `TF_FinishWhile`, or else `TF_AbortWhile`. What it points to belongs to the library.
 */
typedef struct TF_WhileParams {
  /**
   * Number of variables; 0 after a failure.
   */
  int ninputs;
  /**
   * Where the condition is built.
   */
  TF_Graph *cond_graph;
  /**
   * The variables in the condition.
   */
  const TF_Output *cond_inputs;
  /**
   * To be set: whether the loop goes on, one bool.
   */
  TF_Output cond_output;
  /**
   * Where the body is built.
   */
  TF_Graph *body_graph;
  /**
   * The variables in the body.
   */
  const TF_Output *body_inputs;
  /**
   * To be set: the variables of the next turn.
   */
  TF_Output *body_outputs;
  /**
   * To be set: the name of the loop, before all its operations.
   */
  const char *name;
} TF_WhileParams;

/**
 * A view of text that lives elsewhere.
 */
typedef struct TF_StringView {
  /**
   * First character; not ended by a zero byte.
   */
  const char *data;
  /**
   * Number of characters.
   */
  size_t len;
} TF_StringView;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The TensorFlow release whose interface this library has, as `major.minor.patch`. The string is static.
 */
TF_CAPI_EXPORT extern const char *TF_Version(void);

/**
 * Makes `to` the tensor that a serialized `TensorProto` describes. INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern void TF_TensorFromProto(const TF_Buffer *from, TF_Tensor *to, TF_Status *status);

/**
 * New options with default values. Free them with `TF_DeleteSessionOptions`.
 */
TF_CAPI_EXPORT extern TF_SessionOptions *TF_NewSessionOptions(void);

/**
 * Says where sessions run: empty or `local` for this process, else the address of a server.
 */
TF_CAPI_EXPORT extern void TF_SetTarget(TF_SessionOptions *options, const char *target);

/**
 * Sets the configuration: a serialized `ConfigProto` of `proto_len` bytes. INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
void TF_SetConfig(TF_SessionOptions *options,
                  const void *proto,
                  size_t proto_len,
                  TF_Status *status);

/**
 * Frees options; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteSessionOptions(TF_SessionOptions *options);

/**
 * A new graph without operations. Free it with `TF_DeleteGraph`.
 */
TF_CAPI_EXPORT extern TF_Graph *TF_NewGraph(void);

/**
 * Frees a graph. Its operations stay valid while a session on it lives. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteGraph(TF_Graph *graph);

/**
 * Says more about the shape of an output: what is given is merged with what is known. A negative `num_dims` means an
 * unknown rank, -1 an unknown extent. Shapes that were inferred from it before do not change.
 *
 * INVALID_ARGUMENT when the output is not in the graph or the shape contradicts what is known.
 */
TF_CAPI_EXPORT extern
void TF_GraphSetTensorShape(TF_Graph *graph,
                            TF_Output output,
                            const int64_t *dims,
                            int num_dims,
                            TF_Status *status);

/**
 * The number of dimensions of an output; -1 when it is not known.
 *
 * INVALID_ARGUMENT when the output is not in the graph.
 */
TF_CAPI_EXPORT extern int TF_GraphGetTensorNumDims(TF_Graph *graph, TF_Output output, TF_Status *status);

/**
 * Writes the extents of an output, -1 for unknown ones, to `dims`, which has room for `num_dims`: what
 * `TF_GraphGetTensorNumDims` gives.
 *
 * INVALID_ARGUMENT when the output is not in the graph or has another number of dimensions.
 */
TF_CAPI_EXPORT extern
void TF_GraphGetTensorShape(TF_Graph *graph,
                            TF_Output output,
                            int64_t *dims,
                            int num_dims,
                            TF_Status *status);

/**
 * The operation with this name, which belongs to the graph; NULL when there is none.
 */
TF_CAPI_EXPORT extern TF_Operation *TF_GraphOperationByName(TF_Graph *graph, const char *oper_name);

/**
 * Goes through the operations, which belong to the graph: start with `*pos` 0 and call until NULL comes. Operations added
 * meanwhile are seen.
 */
TF_CAPI_EXPORT extern
TF_Operation *TF_GraphNextOperation(TF_Graph *graph,
                                           size_t *pos);

/**
 * Writes the graph as a serialized `GraphDef` into an empty buffer.
 */
TF_CAPI_EXPORT extern void TF_GraphToGraphDef(TF_Graph *graph, TF_Buffer *output_graph_def, TF_Status *status);

/**
 * Writes the `OpDef` of an op, or of a function of the graph, into an empty buffer. NOT_FOUND for an unknown name.
 */
TF_CAPI_EXPORT extern
void TF_GraphGetOpDef(TF_Graph *graph,
                      const char *op_name,
                      TF_Buffer *output_op_def,
                      TF_Status *status);

/**
 * Writes the graph's versions as a serialized `VersionDef` into an empty buffer.
 */
TF_CAPI_EXPORT extern void TF_GraphVersions(TF_Graph *graph, TF_Buffer *output_version_def, TF_Status *status);

/**
 * Tries to compute an output from constants and known shapes alone, without a session. 1 when that succeeds: then
 * `*result` is the value, which the caller owns. 0 with an OK status when it cannot be known.
 */
TF_CAPI_EXPORT extern
unsigned char TF_TryEvaluateConstant(TF_Graph *graph,
                                     TF_Output output,
                                     TF_Tensor**result,
                                     TF_Status *status);

/**
 * Starts an operation of type `op_type` named `oper_name`; `TF_FinishOperation` adds it to the graph and frees the
 * description. NULL for a NULL graph.
 */
TF_CAPI_EXPORT extern
TF_OperationDescription *TF_NewOperation(TF_Graph *graph,
                                                const char *op_type,
                                                const char *oper_name);

/**
 * The same as `TF_NewOperation`: no lock need be held.
 */
TF_CAPI_EXPORT extern
TF_OperationDescription *TF_NewOperationLocked(TF_Graph *graph,
                                                      const char *op_type,
                                                      const char *oper_name);

/**
 * Asks for a device; empty for any.
 */
TF_CAPI_EXPORT extern void TF_SetDevice(TF_OperationDescription *desc, const char *device);

/**
 * Adds an input, for an input argument that takes one tensor. Inputs come in the order of the op's arguments.
 */
TF_CAPI_EXPORT extern void TF_AddInput(TF_OperationDescription *desc, TF_Output input);

/**
 * Adds all inputs of an input argument that takes a list.
 */
TF_CAPI_EXPORT extern
void TF_AddInputList(TF_OperationDescription *desc,
                     const TF_Output *inputs,
                     int num_inputs);

/**
 * Makes the operation wait for another one.
 */
TF_CAPI_EXPORT extern void TF_AddControlInput(TF_OperationDescription *desc, TF_Operation *input);

/**
 * Asks for the device on which another operation is placed.
 */
TF_CAPI_EXPORT extern void TF_ColocateWith(TF_OperationDescription *desc, TF_Operation *op);

/**
 * Adds the operation to its graph and frees the description, also on failure. Attributes that follow from inputs, and
 * defaults, are filled in; shapes are inferred.
 *
 * NULL with INVALID_ARGUMENT for an unknown op, a name that is taken, inputs or attributes that do not fit the op; the
 * graph is unchanged then.
 */
TF_CAPI_EXPORT extern TF_Operation *TF_FinishOperation(TF_OperationDescription *desc, TF_Status *status);

/**
 * The same as `TF_FinishOperation`: no lock need be held.
 */
TF_CAPI_EXPORT extern
TF_Operation *TF_FinishOperationLocked(TF_OperationDescription *desc,
                                              TF_Status *status);

/**
 * Sets an attribute to a string of `length` bytes.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrString(TF_OperationDescription *desc,
                      const char *attr_name,
                      const void *value,
                      size_t length);

/**
 * Sets an attribute to a list of strings; `lengths` gives their numbers of bytes.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrStringList(TF_OperationDescription *desc,
                          const char *attr_name,
                          const void *const *values,
                          const size_t *lengths,
                          int num_values);

/**
 * Sets an attribute to an integer.
 */
TF_CAPI_EXPORT extern void TF_SetAttrInt(TF_OperationDescription *desc, const char *attr_name, int64_t value);

/**
 * Sets an attribute to a list of integers.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrIntList(TF_OperationDescription *desc,
                       const char *attr_name,
                       const int64_t *values,
                       int num_values);

/**
 * Sets an attribute to a float.
 */
TF_CAPI_EXPORT extern void TF_SetAttrFloat(TF_OperationDescription *desc, const char *attr_name, float value);

/**
 * Sets an attribute to a list of floats.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrFloatList(TF_OperationDescription *desc,
                         const char *attr_name,
                         const float *values,
                         int num_values);

/**
 * Sets an attribute to a truth value: 0 is false.
 */
TF_CAPI_EXPORT extern void TF_SetAttrBool(TF_OperationDescription *desc, const char *attr_name, unsigned char value);

/**
 * Sets an attribute to a list of truth values.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrBoolList(TF_OperationDescription *desc,
                        const char *attr_name,
                        const unsigned char *values,
                        int num_values);

/**
 * Sets an attribute to an element type.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrType(TF_OperationDescription *desc,
                    const char *attr_name,
                    TF_DataType value);

/**
 * Sets an attribute to a list of element types.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrTypeList(TF_OperationDescription *desc,
                        const char *attr_name,
                        const TF_DataType *values,
                        int num_values);

/**
 * Sets an attribute to the name of an attribute of the surrounding function, whose value it will have.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrPlaceholder(TF_OperationDescription *desc,
                           const char *attr_name,
                           const char *placeholder);

/**
 * Sets an attribute to the function with this name of `length` bytes.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrFuncName(TF_OperationDescription *desc,
                        const char *attr_name,
                        const char *value,
                        size_t length);

/**
 * Sets an attribute to a shape: a negative `num_dims` is an unknown rank, -1 an unknown extent.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrShape(TF_OperationDescription *desc,
                     const char *attr_name,
                     const int64_t *dims,
                     int num_dims);

/**
 * Sets an attribute to a list of shapes, each with its number of dimensions.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrShapeList(TF_OperationDescription *desc,
                         const char *attr_name,
                         const int64_t *const *dims,
                         const int *num_dims,
                         int num_shapes);

/**
 * Sets an attribute to a shape given as a serialized `TensorShapeProto`. INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrTensorShapeProto(TF_OperationDescription *desc,
                                const char *attr_name,
                                const void *proto,
                                size_t proto_len,
                                TF_Status *status);

/**
 * Sets an attribute to a list of shapes given as serialized `TensorShapeProto`s. INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrTensorShapeProtoList(TF_OperationDescription *desc,
                                    const char *attr_name,
                                    const void *const *protos,
                                    const size_t *proto_lens,
                                    int num_shapes,
                                    TF_Status *status);

/**
 * Sets an attribute to a tensor. Its memory is shared and must not change any more.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrTensor(TF_OperationDescription *desc,
                      const char *attr_name,
                      TF_Tensor *value,
                      TF_Status *status);

/**
 * Sets an attribute to a list of tensors. Their memory is shared and must not change any more.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrTensorList(TF_OperationDescription *desc,
                          const char *attr_name,
                          TF_Tensor *const *values,
                          int num_values,
                          TF_Status *status);

/**
 * Sets an attribute to what a serialized `AttrValue` holds. INVALID_ARGUMENT for other bytes; one without a value makes an
 * attribute without a value.
 */
TF_CAPI_EXPORT extern
void TF_SetAttrValueProto(TF_OperationDescription *desc,
                          const char *attr_name,
                          const void *proto,
                          size_t proto_len,
                          TF_Status *status);

/**
 * The name. The string lives as long as the operation; NULL for NULL.
 */
TF_CAPI_EXPORT extern const char *TF_OperationName(TF_Operation *oper);

/**
 * The type of op. The string lives as long as the operation; NULL for NULL.
 */
TF_CAPI_EXPORT extern const char *TF_OperationOpType(TF_Operation *oper);

/**
 * The device that was asked for; empty for any. The string lives as long as the operation; NULL for NULL.
 */
TF_CAPI_EXPORT extern const char *TF_OperationDevice(TF_Operation *oper);

/**
 * The number of outputs; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TF_OperationNumOutputs(TF_Operation *oper);

/**
 * The element type of an output; 0 when there is no such output.
 */
TF_CAPI_EXPORT extern TF_DataType TF_OperationOutputType(TF_Output oper_out);

/**
 * How many outputs an output argument of the op has; -1 with INVALID_ARGUMENT when there is no such argument.
 */
TF_CAPI_EXPORT extern int TF_OperationOutputListLength(TF_Operation *oper, const char *arg_name, TF_Status *status);

/**
 * The number of inputs; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TF_OperationNumInputs(TF_Operation *oper);

/**
 * The element type of an input; 0 when there is no such input.
 */
TF_CAPI_EXPORT extern TF_DataType TF_OperationInputType(TF_Input oper_in);

/**
 * How many inputs an input argument of the op has; -1 with INVALID_ARGUMENT when there is no such argument.
 */
TF_CAPI_EXPORT extern int TF_OperationInputListLength(TF_Operation *oper, const char *arg_name, TF_Status *status);

/**
 * The output that an input reads; no operation when there is no such input.
 */
TF_CAPI_EXPORT extern TF_Output TF_OperationInput(TF_Input oper_in);

/**
 * Writes the outputs that the inputs read, `max_inputs` at most.
 */
TF_CAPI_EXPORT extern void TF_OperationAllInputs(TF_Operation *oper, TF_Output *inputs, int max_inputs);

/**
 * How many inputs read an output.
 */
TF_CAPI_EXPORT extern int TF_OperationOutputNumConsumers(TF_Output oper_out);

/**
 * Writes the inputs that read an output, `max_consumers` at most, and returns how many there are. The graph may
 * change between two calls.
 */
TF_CAPI_EXPORT extern
int TF_OperationOutputConsumers(TF_Output oper_out,
                                TF_Input *consumers,
                                int max_consumers);

/**
 * How many operations must run before this one, beside those it reads.
 */
TF_CAPI_EXPORT extern int TF_OperationNumControlInputs(TF_Operation *oper);

/**
 * Writes those operations, `max_control_inputs` at most, and returns how many there are.
 */
TF_CAPI_EXPORT extern
int TF_OperationGetControlInputs(TF_Operation *oper,
                                 TF_Operation**control_inputs,
                                 int max_control_inputs);

/**
 * How many operations wait for this one without reading it.
 */
TF_CAPI_EXPORT extern int TF_OperationNumControlOutputs(TF_Operation *oper);

/**
 * Writes those operations, `max_control_outputs` at most, and returns how many there are.
 */
TF_CAPI_EXPORT extern
int TF_OperationGetControlOutputs(TF_Operation *oper,
                                  TF_Operation**control_outputs,
                                  int max_control_outputs);

/**
 * Writes the operation as a serialized `NodeDef` into an empty buffer.
 */
TF_CAPI_EXPORT extern
void TF_OperationToNodeDef(TF_Operation *oper,
                           TF_Buffer *output_node_def,
                           TF_Status *status);

/**
 * The kind and size of an attribute's value. INVALID_ARGUMENT when there is no such attribute.
 */
TF_CAPI_EXPORT extern
TF_AttrMetadata TF_OperationGetAttrMetadata(TF_Operation *oper,
                                                   const char *attr_name,
                                                   TF_Status *status);

/**
 * Writes the bytes of a string, `max_length` at most, without a zero byte at the end.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrString(TF_Operation *oper,
                               const char *attr_name,
                               void *value,
                               size_t max_length,
                               TF_Status *status);

/**
 * Writes addresses and lengths of `max_values` strings at most; their bytes go one after the other into `storage`, which
 * has room for `storage_size` bytes: the `total_size` of the metadata. INVALID_ARGUMENT when it has too little.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrStringList(TF_Operation *oper,
                                   const char *attr_name,
                                   void**values,
                                   size_t *lengths,
                                   int max_values,
                                   void *storage,
                                   size_t storage_size,
                                   TF_Status *status);

/**
 * Gets an integer.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrInt(TF_Operation *oper,
                            const char *attr_name,
                            int64_t *value,
                            TF_Status *status);

/**
 * Writes the integers of a list, `max_values` at most.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrIntList(TF_Operation *oper,
                                const char *attr_name,
                                int64_t *values,
                                int max_values,
                                TF_Status *status);

/**
 * Gets a float.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrFloat(TF_Operation *oper,
                              const char *attr_name,
                              float *value,
                              TF_Status *status);

/**
 * Writes the floats of a list, `max_values` at most.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrFloatList(TF_Operation *oper,
                                  const char *attr_name,
                                  float *values,
                                  int max_values,
                                  TF_Status *status);

/**
 * Gets a truth value: 0 or 1.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrBool(TF_Operation *oper,
                             const char *attr_name,
                             unsigned char *value,
                             TF_Status *status);

/**
 * Writes the truth values of a list, `max_values` at most.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrBoolList(TF_Operation *oper,
                                 const char *attr_name,
                                 unsigned char *values,
                                 int max_values,
                                 TF_Status *status);

/**
 * Gets an element type.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrType(TF_Operation *oper,
                             const char *attr_name,
                             TF_DataType *value,
                             TF_Status *status);

/**
 * Writes the element types of a list, `max_values` at most.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrTypeList(TF_Operation *oper,
                                 const char *attr_name,
                                 TF_DataType *values,
                                 int max_values,
                                 TF_Status *status);

/**
 * Writes the extents of a shape, -1 for unknown ones, `num_dims` at most; nothing for an unknown rank.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrShape(TF_Operation *oper,
                              const char *attr_name,
                              int64_t *value,
                              int num_dims,
                              TF_Status *status);

/**
 * Writes addresses of the extents and ranks (-1 for unknown) of `num_shapes` shapes at most; the extents go one after the
 * other into `storage`, which has room for `storage_size` of them: the `total_size` of the metadata. INVALID_ARGUMENT
 * when it has too little.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrShapeList(TF_Operation *oper,
                                  const char *attr_name,
                                  int64_t**dims,
                                  int *num_dims,
                                  int num_shapes,
                                  int64_t *storage,
                                  int storage_size,
                                  TF_Status *status);

/**
 * Writes a shape as a serialized `TensorShapeProto` into an empty buffer.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrTensorShapeProto(TF_Operation *oper,
                                         const char *attr_name,
                                         TF_Buffer *value,
                                         TF_Status *status);

/**
 * Writes the shapes of a list as new buffers with serialized `TensorShapeProto`s, `max_values` at most.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrTensorShapeProtoList(TF_Operation *oper,
                                             const char *attr_name,
                                             TF_Buffer**values,
                                             int max_values,
                                             TF_Status *status);

/**
 * Gets a tensor, which the caller owns; NULL on an error.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrTensor(TF_Operation *oper,
                               const char *attr_name,
                               TF_Tensor**value,
                               TF_Status *status);

/**
 * Writes the tensors of a list, `max_values` at most, which the caller owns.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrTensorList(TF_Operation *oper,
                                   const char *attr_name,
                                   TF_Tensor**values,
                                   int max_values,
                                   TF_Status *status);

/**
 * Writes any value as a serialized `AttrValue` into an empty buffer.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrValueProto(TF_Operation *oper,
                                   const char *attr_name,
                                   TF_Buffer *output_attr_value,
                                   TF_Status *status);

/**
 * The number of attributes; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TF_OperationGetNumAttrs(TF_Operation *oper);

/**
 * The length of the name of attribute `i`, without the zero byte at its end; -1 when there is no such attribute.
 */
TF_CAPI_EXPORT extern int TF_OperationGetAttrNameLength(TF_Operation *oper, int i);

/**
 * Writes the characters of the name of attribute `i`, and no zero byte. `output` has room for the length of the name.
 */
TF_CAPI_EXPORT extern
void TF_OperationGetAttrName(TF_Operation *oper,
                             int i,
                             char *output,
                             TF_Status *status);

/**
 * New options with default values. Free them with `TF_DeleteImportGraphDefOptions`.
 */
TF_CAPI_EXPORT extern TF_ImportGraphDefOptions *TF_NewImportGraphDefOptions(void);

/**
 * Frees options; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions *opts);

/**
 * Puts `prefix` and a slash before all names; empty for none.
 */
TF_CAPI_EXPORT extern void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions *opts, const char *prefix);

/**
 * Gives a device to nodes that ask for none.
 */
TF_CAPI_EXPORT extern void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions *opts, const char *device);

/**
 * Whether names that are taken are made unique; otherwise they are an error.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions *opts,
                                              unsigned char uniquify_names);

/**
 * Whether a prefix that is taken is made unique; otherwise it is an error.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions *opts,
                                               unsigned char uniquify_prefix);

/**
 * Reads `dst`, an output of the graph, wherever the imported graph reads output `src_index` of `src_name`. An index of -1
 * on both sides means the operations themselves, as control inputs.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions *opts,
                                             const char *src_name,
                                             int src_index,
                                             TF_Output dst);

/**
 * Waits for `dst`, an operation of the graph, wherever the imported graph waits for `src_name`.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions *opts,
                                                    const char *src_name,
                                                    TF_Operation *dst);

/**
 * Makes imported nodes wait for `oper`, an operation of the graph.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions *opts,
                                                  TF_Operation *oper);

/**
 * Asks for an output of the imported graph, by its name there; if it is mapped, for what it is mapped to.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions *opts,
                                             const char *oper_name,
                                             int index);

/**
 * How many outputs were asked for.
 */
TF_CAPI_EXPORT extern int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions *opts);

/**
 * Asks for an operation of the imported graph, by its name there.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions *opts,
                                                const char *oper_name);

/**
 * How many operations were asked for.
 */
TF_CAPI_EXPORT extern int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions *opts);

/**
 * Adds the operations of a serialized `GraphDef` to a graph, all or none. NULL options are the defaults.
 *
 * INVALID_ARGUMENT for other bytes, names that are taken, operations that do not fit their ops, inputs that are not there;
 * NOT_FOUND for an op that is not known.
 */
TF_CAPI_EXPORT extern
void TF_GraphImportGraphDef(TF_Graph *graph,
                            const TF_Buffer *graph_def,
                            const TF_ImportGraphDefOptions *options,
                            TF_Status *status);

/**
 * As `TF_GraphImportGraphDef`, and writes the outputs that the options ask for: `num_return_outputs` must be their number.
 */
TF_CAPI_EXPORT extern
void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph *graph,
                                             const TF_Buffer *graph_def,
                                             const TF_ImportGraphDefOptions *options,
                                             TF_Output *return_outputs,
                                             int num_return_outputs,
                                             TF_Status *status);

/**
 * As `TF_GraphImportGraphDef`, and gives what the options ask for. Free the results with
 * `TF_DeleteImportGraphDefResults`; NULL on an error.
 */
TF_CAPI_EXPORT extern
TF_ImportGraphDefResults *TF_GraphImportGraphDefWithResults(TF_Graph *graph,
                                                                   const TF_Buffer *graph_def,
                                                                   const TF_ImportGraphDefOptions *options,
                                                                   TF_Status *status);

/**
 * As `TF_GraphImportGraphDefWithResults`. The reference takes the address of one of its own C++ messages here; a message of
 * this library is its serialized form, and so that is what the buffer must hold.
 */
TF_CAPI_EXPORT extern
TF_ImportGraphDefResults *TF_GraphImportGraphDefWithResultsNoSerialization(TF_Graph *graph,
                                                                                  const TF_Buffer *graph_def,
                                                                                  const TF_ImportGraphDefOptions *options,
                                                                                  TF_Status *status);

/**
 * The outputs that were asked for, in that order. The array belongs to the results.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults *results,
                                           int *num_outputs,
                                           TF_Output**outputs);

/**
 * The operations that were asked for, in that order. The array belongs to the results.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults *results,
                                              int *num_opers,
                                              TF_Operation***opers);

/**
 * The keys of input mappings that mapped nothing because the imported graph has no such output: names and output numbers.
 * The arrays belong to the results.
 */
TF_CAPI_EXPORT extern
void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults *results,
                                                        int *num_missing_unused_input_mappings,
                                                        const char***src_names,
                                                        int**src_indexes);

/**
 * Frees results; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults *results);

/**
 * Makes a function of operations of `fn_body`.
 *
 * With `num_opers` -1 the body is all operations but those that give the `inputs`; otherwise the `opers`. `outputs` are
 * what it returns, under `output_names` if those are given. With `append_hash_to_fn_name` the name gets a hash of the
 * function at its end. Free the function with `TF_DeleteFunction`.
 *
 * NULL with INVALID_ARGUMENT for inputs or outputs that are not of the graph, inputs given twice, or an operation that
 * reads something that is neither in the body nor an input.
 */
TF_CAPI_EXPORT extern
TF_Function *TF_GraphToFunction(const TF_Graph *fn_body,
                                       const char *fn_name,
                                       unsigned char append_hash_to_fn_name,
                                       int num_opers,
                                       const TF_Operation*const *opers,
                                       int ninputs,
                                       const TF_Output *inputs,
                                       int noutputs,
                                       const TF_Output *outputs,
                                       const char *const *output_names,
                                       const TF_FunctionOptions *opts,
                                       const char *description,
                                       TF_Status *status);

/**
 * As `TF_GraphToFunction`, with operations that a call of the function must run: `control_outputs`, under
 * `control_output_names` or their own names.
 */
TF_CAPI_EXPORT extern
TF_Function *TF_GraphToFunctionWithControlOutputs(const TF_Graph *fn_body,
                                                         const char *fn_name,
                                                         unsigned char append_hash_to_fn_name,
                                                         int num_opers,
                                                         const TF_Operation*const *opers,
                                                         int ninputs,
                                                         const TF_Output *inputs,
                                                         int noutputs,
                                                         const TF_Output *outputs,
                                                         const char *const *output_names,
                                                         int ncontrol_outputs,
                                                         const TF_Operation*const *control_outputs,
                                                         const char *const *control_output_names,
                                                         const TF_FunctionOptions *opts,
                                                         const char *description,
                                                         TF_Status *status);

/**
 * The name. The string lives as long as the function; NULL for NULL.
 */
TF_CAPI_EXPORT extern const char *TF_FunctionName(TF_Function *func);

/**
 * Writes the function as a serialized `FunctionDef` into an empty buffer.
 */
TF_CAPI_EXPORT extern
void TF_FunctionToFunctionDef(TF_Function *func,
                              TF_Buffer *output_func_def,
                              TF_Status *status);

/**
 * A function from a serialized `FunctionDef`; free it with `TF_DeleteFunction`. NULL with INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
TF_Function *TF_FunctionImportFunctionDef(const void *proto,
                                                 size_t proto_len,
                                                 TF_Status *status);

/**
 * Sets an attribute of the function to a serialized `AttrValue`. INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
void TF_FunctionSetAttrValueProto(TF_Function *func,
                                  const char *attr_name,
                                  const void *proto,
                                  size_t proto_len,
                                  TF_Status *status);

/**
 * Writes an attribute of the function as a serialized `AttrValue` into an empty buffer. INVALID_ARGUMENT when there is no
 * such attribute.
 */
TF_CAPI_EXPORT extern
void TF_FunctionGetAttrValueProto(TF_Function *func,
                                  const char *attr_name,
                                  TF_Buffer *output_attr_value,
                                  TF_Status *status);

/**
 * Frees the handle; graphs keep their copies. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteFunction(TF_Function *func);

/**
 * Adds a function to the library of a graph, and `grad`, unless it is NULL, as its gradient. The graph keeps copies.
 *
 * INVALID_ARGUMENT when another function of that name is there.
 */
TF_CAPI_EXPORT extern
void TF_GraphCopyFunction(TF_Graph *g,
                          const TF_Function *func,
                          const TF_Function *grad,
                          TF_Status *status);

/**
 * The number of functions in the library of a graph; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TF_GraphNumFunctions(TF_Graph *g);

/**
 * Writes handles of the graph's functions, `max_func` at most, and returns how many were written. The caller frees them
 * with `TF_DeleteFunction`.
 */
TF_CAPI_EXPORT extern
int TF_GraphGetFunctions(TF_Graph *g,
                         TF_Function**funcs,
                         int max_func,
                         TF_Status *status);

/**
 * Starts a loop whose variables begin as `inputs`, outputs of `g`. INVALID_ARGUMENT without inputs, or for inputs that are
 * not of the graph.
 */
TF_CAPI_EXPORT extern
TF_WhileParams TF_NewWhile(TF_Graph *g,
                                  TF_Output *inputs,
                                  int ninputs,
                                  TF_Status *status);

/**
 * Adds the loop to its graph, writes the last values of its variables to `outputs`, and frees what belongs to `params`,
 * also on failure.
 *
 * INVALID_ARGUMENT when something was not set or does not fit; the graph is unchanged then, and `outputs` untouched.
 */
TF_CAPI_EXPORT extern
void TF_FinishWhile(const TF_WhileParams *params,
                    TF_Status *status,
                    TF_Output *outputs);

/**
 * `TF_FinishWhile` without freeing what belongs to `params`: after it `TF_AbortWhile`
 * frees that. In no header of TensorFlow's, but exported by it.
 */
TF_CAPI_EXPORT extern
void TF_FinishWhileHelper(const TF_WhileParams *params,
                          TF_Status *status,
                          TF_Output *outputs);

/**
 * Frees what belongs to `params` without adding a loop. NULL and a loop that was not started are ignored.
 */
TF_CAPI_EXPORT extern void TF_AbortWhile(const TF_WhileParams *params);

/**
 * Adds operations that compute the gradients of the sum of the outputs `y` with respect to each output `x`, and writes
 * those to `dy`, which has room for `nx`. `dx` gives a gradient for each `y`; NULL for ones. Where nothing flows the result
 * has no operation.
 *
 * NOT_FOUND for an op that has no gradient, INVALID_ARGUMENT for outputs that are not of the graph or do not depend on
 * each other.
 */
TF_CAPI_EXPORT extern
void TF_AddGradients(TF_Graph *g,
                     TF_Output *y,
                     int ny,
                     TF_Output *x,
                     int nx,
                     TF_Output *dx,
                     TF_Status *status,
                     TF_Output *dy);

/**
 * As `TF_AddGradients`, with names that start with `prefix` and a slash. INVALID_ARGUMENT also for a prefix that is in use.
 * NULL is for a prefix that the library chooses.
 */
TF_CAPI_EXPORT extern
void TF_AddGradientsWithPrefix(TF_Graph *g,
                               const char *prefix,
                               TF_Output *y,
                               int ny,
                               TF_Output *x,
                               int nx,
                               TF_Output *dx,
                               TF_Status *status,
                               TF_Output *dy);

/**
 * A session on a graph; it keeps the graph alive. Free it with `TF_DeleteSession`. NULL options are the defaults.
 *
 * NULL with INVALID_ARGUMENT for a NULL graph, NOT_FOUND for a target that nothing serves.
 */
TF_CAPI_EXPORT extern
TF_Session *TF_NewSession(TF_Graph *graph,
                                 const TF_SessionOptions *opts,
                                 TF_Status *status);

/**
 * Loads the SavedModel in `export_dir` whose tags are exactly `tags`: its graph into `graph`, which must be empty, and a
 * session with its variables restored and its tables initialised. `meta_graph_def`, if given, receives the serialized
 * `MetaGraphDef`: signatures and the like. Free the session with `TF_DeleteSession`.
 *
 * NULL with NOT_FOUND when there is no such model, INVALID_ARGUMENT for a graph that is not empty, or the error of what
 * failed.
 */
TF_CAPI_EXPORT extern
TF_Session *TF_LoadSessionFromSavedModel(const TF_SessionOptions *session_options,
                                                const TF_Buffer *run_options,
                                                const char *export_dir,
                                                const char *const *tags,
                                                int tags_len,
                                                TF_Graph *graph,
                                                TF_Buffer *meta_graph_def,
                                                TF_Status *status);

/**
 * Closes a session: steps that run end with CANCELLED, later ones are refused, its variables are gone. Closing it again
 * is fine.
 */
TF_CAPI_EXPORT extern void TF_CloseSession(TF_Session *session, TF_Status *status);

/**
 * Frees a session, closing it first; NULL is ignored. Steps that run end with CANCELLED; no later call may use it.
 */
TF_CAPI_EXPORT extern void TF_DeleteSession(TF_Session *session, TF_Status *status);

/**
 * Runs what the outputs and operations need.
 *
 * `inputs` are outputs of operations that are replaced by `input_values`, which the caller keeps. The values of `outputs`
 * go into `output_values`; the caller owns them. `target_opers` run without giving a value. `run_options`, if given, is a
 * serialized `RunOptions`; `run_metadata`, if given, is an empty buffer for a serialized `RunMetadata`.
 *
 * On an error all `output_values` are NULL. The code is that of the operation that failed; INVALID_ARGUMENT for arguments
 * that do not fit the graph, CANCELLED for a closed session, DEADLINE_EXCEEDED when time ran out.
 */
TF_CAPI_EXPORT extern
void TF_SessionRun(TF_Session *session,
                   const TF_Buffer *run_options,
                   const TF_Output *inputs,
                   TF_Tensor *const *input_values,
                   int ninputs,
                   const TF_Output *outputs,
                   TF_Tensor**output_values,
                   int noutputs,
                   const TF_Operation*const *target_opers,
                   int ntargets,
                   TF_Buffer *run_metadata,
                   TF_Status *status);

/**
 * Makes the session know the operations that the graph has now. Runs do so themselves.
 */
TF_CAPI_EXPORT extern void TF_ExtendSession(TF_Session *session, TF_Status *status);

/**
 * The devices of a session, which the caller frees with `TF_DeleteDeviceList`; NULL on an error.
 */
TF_CAPI_EXPORT extern TF_DeviceList *TF_SessionListDevices(TF_Session *session, TF_Status *status);

/**
 * Closes all sessions of the target in `opt` and clears the containers with these names, or the default one.
 */
TF_CAPI_EXPORT extern
void TF_Reset(const TF_SessionOptions *opt,
              const char **containers,
              int ncontainers,
              TF_Status *status);

/**
 * Sets up a run whose `inputs` come, and whose `outputs` are taken, in pieces by `TF_SessionPRun`; `target_opers` run as
 * soon as they can.
 *
 * `*handle` becomes the name of the partial run, which the caller frees with `TF_DeletePRunHandle`; NULL on an error:
 * INVALID_ARGUMENT for arguments that do not fit the graph, CANCELLED for a closed session.
 */
TF_CAPI_EXPORT extern
void TF_SessionPRunSetup(TF_Session *session,
                         const TF_Output *inputs,
                         int ninputs,
                         const TF_Output *outputs,
                         int noutputs,
                         const TF_Operation*const *target_opers,
                         int ntargets,
                         const char**handle,
                         TF_Status *status);

/**
 * Goes on with the partial run `handle`: brings `input_values`, which the caller keeps, and takes the values of `outputs`,
 * which the caller owns. Each input and output that was set up comes once. `target_opers` are those of the set-up.
 *
 * INVALID_ARGUMENT for an unknown handle, inputs or outputs that were not set up or have come already, and outputs that
 * need inputs still missing; the partial run can go on after these. Any other error ends it. On an error all
 * `output_values` are NULL.
 */
TF_CAPI_EXPORT extern
void TF_SessionPRun(TF_Session *session,
                    const char *handle,
                    const TF_Output *inputs,
                    TF_Tensor *const *input_values,
                    int ninputs,
                    const TF_Output *outputs,
                    TF_Tensor**output_values,
                    int noutputs,
                    const TF_Operation*const *target_opers,
                    int ntargets,
                    TF_Status *status);

/**
 * Frees the text of a handle from `TF_SessionPRunSetup` or `TF_PRunSetup`; NULL is ignored. A partial run that has not
 * ended stays with its session.
 */
TF_CAPI_EXPORT extern void TF_DeletePRunHandle(const char *handle);

/**
 * A session without operations. Free it with `TF_DeleteDeprecatedSession`. NULL options are the defaults. NULL with
 * NOT_FOUND for a target that nothing serves.
 */
TF_CAPI_EXPORT extern
TF_DeprecatedSession *TF_NewDeprecatedSession(const TF_SessionOptions *options,
                                                     TF_Status *status);

/**
 * Closes a session: steps that run end with CANCELLED, later ones are refused.
 */
TF_CAPI_EXPORT extern void TF_CloseDeprecatedSession(TF_DeprecatedSession *session, TF_Status *status);

/**
 * Frees a session, closing it first; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteDeprecatedSession(TF_DeprecatedSession *session, TF_Status *status);

/**
 * Adds the operations of a serialized `GraphDef`. INVALID_ARGUMENT for other bytes and for names that are there.
 */
TF_CAPI_EXPORT extern
void TF_ExtendGraph(TF_DeprecatedSession *session,
                    const void *proto,
                    size_t proto_len,
                    TF_Status *status);

/**
 * Runs as `TF_SessionRun` does, with outputs named `node:1` (or `node` for the first) and operations by name. The caller
 * keeps `inputs` and owns what is put into `outputs`; on an error those are NULL.
 */
TF_CAPI_EXPORT extern
void TF_Run(TF_DeprecatedSession *session,
            const TF_Buffer *run_options,
            const char **input_names,
            TF_Tensor**inputs,
            int ninputs,
            const char **output_names,
            TF_Tensor**outputs,
            int noutputs,
            const char **target_oper_names,
            int ntargets,
            TF_Buffer *run_metadata,
            TF_Status *status);

/**
 * The devices of a session, which the caller frees with `TF_DeleteDeviceList`; NULL on an error.
 */
TF_CAPI_EXPORT extern
TF_DeviceList *TF_DeprecatedSessionListDevices(TF_DeprecatedSession *session,
                                                      TF_Status *status);

/**
 * Sets up a partial run as `TF_SessionPRunSetup` does, by names.
 */
TF_CAPI_EXPORT extern
void TF_PRunSetup(TF_DeprecatedSession *session,
                  const char **input_names,
                  int ninputs,
                  const char **output_names,
                  int noutputs,
                  const char **target_oper_names,
                  int ntargets,
                  const char**handle,
                  TF_Status *status);

/**
 * Goes on with a partial run as `TF_SessionPRun` does, by names. The caller keeps `inputs` and owns what is put into
 * `outputs`; on an error those are NULL.
 */
TF_CAPI_EXPORT extern
void TF_PRun(TF_DeprecatedSession *session,
             const char *handle,
             const char **input_names,
             TF_Tensor**inputs,
             int ninputs,
             const char **output_names,
             TF_Tensor**outputs,
             int noutputs,
             const char **target_oper_names,
             int ntargets,
             TF_Status *status);

/**
 * Frees a list; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteDeviceList(TF_DeviceList *list);

/**
 * The number of devices; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TF_DeviceListCount(const TF_DeviceList *list);

/**
 * The full name of a device, such as `/job:localhost/replica:0/task:0/device:CPU:0`. The string lives as long as the
 * list. NULL with INVALID_ARGUMENT when there is no such device.
 */
TF_CAPI_EXPORT extern const char *TF_DeviceListName(const TF_DeviceList *list, int index, TF_Status *status);

/**
 * The type of a device, such as `CPU`. The string lives as long as the list. NULL with INVALID_ARGUMENT when there is no
 * such device.
 */
TF_CAPI_EXPORT extern
const char *TF_DeviceListType(const TF_DeviceList *list,
                              int index,
                              TF_Status *status);

/**
 * The bytes of memory of a device. -1 with INVALID_ARGUMENT when there is no such device.
 */
TF_CAPI_EXPORT extern int64_t TF_DeviceListMemoryBytes(const TF_DeviceList *list, int index, TF_Status *status);

/**
 * A number that is another one after a device was started again. 0 with INVALID_ARGUMENT when there is no such device.
 */
TF_CAPI_EXPORT extern uint64_t TF_DeviceListIncarnation(const TF_DeviceList *list, int index, TF_Status *status);

/**
 * Loads a shared library, which registers its ops and kernels in its constructors; it stays loaded for good. Where a name
 * without a slash is looked for is up to the system. Free the handle with `TF_DeleteLibraryHandle`.
 *
 * NULL with NOT_FOUND, and what the system says, when it cannot be loaded.
 */
TF_CAPI_EXPORT extern
TF_Library *TF_LoadLibrary(const char *library_filename,
                                  TF_Status *status);

/**
 * The ops that a library registered, as a serialized `OpList` that belongs to the handle.
 */
TF_CAPI_EXPORT extern TF_Buffer TF_GetOpList(TF_Library *lib_handle);

/**
 * Frees a handle; the library stays loaded. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteLibraryHandle(TF_Library *lib_handle);

/**
 * Calls `listener` with each text that a printing op prints, on any thread, instead of printing it. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_RegisterLogListener(void (*listener)(const char *message));

/**
 * The definitions of all ops as a serialized `OpList`: those of the library, and those that were registered. Free the
 * buffer with `TF_DeleteBuffer`; NULL when memory is out.
 */
TF_CAPI_EXPORT extern TF_Buffer *TF_GetAllOpList(void);

/**
 * The kernels of all ops as a serialized `KernelList`. Free the buffer with `TF_DeleteBuffer`; NULL on an error.
 */
TF_CAPI_EXPORT extern TF_Buffer *TF_GetAllRegisteredKernels(TF_Status *status);

/**
 * The kernels of one op as a serialized `KernelList`; an empty one for an unknown op. Free the buffer with
 * `TF_DeleteBuffer`; NULL on an error.
 */
TF_CAPI_EXPORT extern TF_Buffer *TF_GetRegisteredKernelsForOp(const char *name, TF_Status *status);

/**
 * A map with a definition for each op of a serialized `OpList`, as the op itself says. Free it with `TF_DeleteApiDefMap`.
 * NULL with INVALID_ARGUMENT for other bytes.
 */
TF_CAPI_EXPORT extern
TF_ApiDefMap *TF_NewApiDefMap(TF_Buffer *op_list_buffer,
                                     TF_Status *status);

/**
 * Frees a map; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteApiDefMap(TF_ApiDefMap *apimap);

/**
 * Merges definitions into the map: an `ApiDefs` in text form, in which a string may be written as `<<WORD`, its lines, and
 * `WORD`. Where both say something, the new one wins. INVALID_ARGUMENT for other text and for ops that are not in the map.
 */
TF_CAPI_EXPORT extern
void TF_ApiDefMapPut(TF_ApiDefMap *api_def_map,
                     const char *text,
                     size_t text_len,
                     TF_Status *status);

/**
 * The definition of an op as a serialized `ApiDef`. Free the buffer with `TF_DeleteBuffer`. NULL with INVALID_ARGUMENT when
 * the map has no such op.
 */
TF_CAPI_EXPORT extern
TF_Buffer *TF_ApiDefMapGet(TF_ApiDefMap *api_def_map,
                           const char *name,
                           size_t name_len,
                           TF_Status *status);

/**
 * Servers are not implemented: NULL with UNIMPLEMENTED, or INVALID_ARGUMENT for bytes that are no `ServerDef`. A server
 * would be freed with `TF_DeleteServer`.
 */
TF_CAPI_EXPORT extern TF_Server *TF_NewServer(const void *proto, size_t proto_len, TF_Status *status);

/**
 * Starts a server. INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern void TF_ServerStart(TF_Server *server, TF_Status *status);

/**
 * Stops a server. INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern void TF_ServerStop(TF_Server *server, TF_Status *status);

/**
 * Waits until a server has stopped. INVALID_ARGUMENT for NULL.
 */
TF_CAPI_EXPORT extern void TF_ServerJoin(TF_Server *server, TF_Status *status);

/**
 * The target for `TF_SetTarget` by which sessions reach a server; it belongs to the server. NULL for NULL.
 */
TF_CAPI_EXPORT extern const char *TF_ServerTarget(TF_Server *server);

/**
 * Stops and frees a server; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteServer(TF_Server *server);

/**
 * Makes `op` wait for `input`.
 */
TF_CAPI_EXPORT extern
void TF_AddOperationControlInput(TF_Graph *graph,
                                 TF_Operation *op,
                                 TF_Operation *input);

/**
 * Sets an attribute of an operation to a serialized `AttrValue`. INVALID_ARGUMENT for other bytes, and for a value that the
 * operation's types cannot follow from.
 */
TF_CAPI_EXPORT extern
void TF_SetAttr(TF_Graph *graph,
                TF_Operation *op,
                const char *attr_name,
                TF_Buffer *attr_value_proto,
                TF_Status *status);

/**
 * Removes an attribute of an operation. INVALID_ARGUMENT for one that the operation's types follow from.
 */
TF_CAPI_EXPORT extern
void TF_ClearAttr(TF_Graph *graph,
                  TF_Operation *op,
                  const char *attr_name,
                  TF_Status *status);

/**
 * Gives an operation a full type, a serialized `FullTypeDef`: exports and copies have it. Other bytes give an empty one.
 */
TF_CAPI_EXPORT extern
void TF_SetFullType(TF_Graph *graph,
                    TF_Operation *op,
                    const TF_Buffer *full_type_proto);

/**
 * Asks for another device for an operation.
 */
TF_CAPI_EXPORT extern void TF_SetRequestedDevice(TF_Graph *graph, TF_Operation *op, const char *device);

/**
 * Makes an operation wait for nothing but what it reads.
 */
TF_CAPI_EXPORT extern void TF_RemoveAllControlInputs(TF_Graph *graph, TF_Operation *op);

/**
 * Whether an op that was added without a shape function is an error, as it is unless this says otherwise. NULL is ignored.
 */
TF_CAPI_EXPORT extern
void TF_SetRequireShapeInferenceFns(TF_Graph *graph,
                                    bool require);

/**
 * Makes the input `dst` read `new_src`. OUT_OF_RANGE when either is not there, INVALID_ARGUMENT when the types differ.
 */
TF_CAPI_EXPORT extern
void TF_UpdateEdge(TF_Graph *graph,
                   TF_Output new_src,
                   TF_Input dst,
                   TF_Status *status);

/**
 * Adds an input to a While operation whose attribute `T` already allows for it.
 */
TF_CAPI_EXPORT extern
void TF_AddWhileInputHack(TF_Graph *graph,
                          TF_Output new_src,
                          TF_Operation *dst,
                          TF_Status *status);

/**
 * What the resource or variant at an output holds, as a serialized `CppShapeInferenceResult.HandleData`; NULL when that
 * is not known, or on an error. Free it with `TF_DeleteBuffer`.
 */
TF_CAPI_EXPORT extern TF_Buffer *TF_GetHandleShapeAndType(TF_Graph *graph, TF_Output output);

/**
 * Says what the resource or variant at an output holds: a serialized `CppShapeInferenceResult.HandleData` of `proto_len`
 * bytes. INVALID_ARGUMENT for other bytes and for an output that is not there.
 */
TF_CAPI_EXPORT extern
void TF_SetHandleShapeAndType(TF_Graph *graph,
                              TF_Output output,
                              const void *proto,
                              size_t proto_len,
                              TF_Status *status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_C_API_H_ */
