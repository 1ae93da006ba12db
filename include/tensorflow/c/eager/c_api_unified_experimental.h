/* One way to execute ops and to trace them into functions. Any thread may call any function; which objects threads
 * may share is said at each type, and none may be in use when it is deleted. Text and arrays that are passed in
 * belong to the caller and are read during the call only, unless a comment says otherwise. A function that takes a
 * TF_Status sets it on every call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_EAGER_C_API_UNIFIED_EXPERIMENTAL_H_
#define TENSORFLOW_C_EAGER_C_API_UNIFIED_EXPERIMENTAL_H_

#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

/**
 * A function that was traced. Threads may read one at the same time.
 */
typedef struct TF_AbstractFunction TF_AbstractFunction;

/**
 * An op to be executed or traced: type, name, attributes. One thread at a time may use it.
 */
typedef struct TF_AbstractOp TF_AbstractOp;

/**
 * An input or output of an op: a tensor, or an output of a node. Threads may read one at the same time.
 */
typedef struct TF_AbstractTensor TF_AbstractTensor;

/**
 * Where ops are executed or traced. One thread at a time may trace; any thread may execute.
 */
typedef struct TF_ExecutionContext TF_ExecutionContext;

/**
 * A list of tensors, which do not belong to it. One thread at a time may use it.
 */
typedef struct TF_OutputList TF_OutputList;

/**
 * A shape of which not everything need be known.
 */
typedef struct TF_Shape {
  /**
   * Number of dimensions; -1 for an unknown rank.
   */
  int num_dims;
  /**
   * The extents; -1 for an unknown one.
   */
  int64_t *dim_sizes;
} TF_Shape;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Chooses what traces: `graphdef` is what there is; `mlir` is taken for it. INVALID_ARGUMENT for other names.
 */
TF_CAPI_EXPORT extern void TF_SetTracingImplementation(const char *name, TF_Status *status);

/**
 * A context that traces a function of this name. `TF_FinalizeFunction` makes the function and frees the context; without it,
 * free the context with `TF_DeleteExecutionContext`.
 */
TF_CAPI_EXPORT extern
TF_ExecutionContext *TF_CreateFunction(const char *fn_name,
                                              TF_Status *status);

/**
 * A context that executes. NULL options are the defaults. Free it with `TF_DeleteExecutionContext`.
 */
TF_CAPI_EXPORT extern
TF_ExecutionContext *TF_NewEagerExecutionContext(TFE_ContextOptions *options,
                                                        TF_Status *s);

/**
 * Frees a context; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteExecutionContext(TF_ExecutionContext *context);

/**
 * Adds a parameter to the function that is traced, after those before. Free the tensor with `TF_DeleteAbstractTensor`. NULL
 * with INVALID_ARGUMENT for a context that executes.
 */
TF_CAPI_EXPORT extern
TF_AbstractTensor *TF_AddFunctionParameter(TF_ExecutionContext *func,
                                                  TF_DataType dtype,
                                                  TF_Shape shape,
                                                  TF_Status *s);

/**
 * Makes a function of what was traced, with these outputs, and frees the context, also on failure. Free the function with
 * `TF_DeleteAbstractFunction`.
 *
 * NULL with INVALID_ARGUMENT for a context that executes, which is not freed; with UNIMPLEMENTED for an output that was
 * executed.
 */
TF_CAPI_EXPORT extern
TF_AbstractFunction *TF_FinalizeFunction(TF_ExecutionContext *ctx,
                                                TF_OutputList *outputs,
                                                TF_Status *status);

/**
 * Frees a function; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteAbstractFunction(TF_AbstractFunction *func);

/**
 * Adds a function to a context that executes. INVALID_ARGUMENT when another has its name; UNIMPLEMENTED for a context that
 * traces.
 */
TF_CAPI_EXPORT extern
void TF_ExecutionContextRegisterFunction(TF_ExecutionContext *ctx,
                                         TF_AbstractFunction *func,
                                         TF_Status *s);

/**
 * The context that executes. It belongs to `ctx`. NULL with INVALID_ARGUMENT for one that traces.
 */
TF_CAPI_EXPORT extern TFE_Context *TF_ExecutionContextGetTFEContext(TF_ExecutionContext *ctx, TF_Status *s);

/**
 * A tensor of a handle, which then belongs to the tensor. Free it with `TF_DeleteAbstractTensor`.
 */
TF_CAPI_EXPORT extern
TF_AbstractTensor *TF_CreateAbstractTensorFromEagerTensor(TFE_TensorHandle *t,
                                                                 TF_Status *s);

/**
 * The handle of a tensor, to which it belongs. NULL with INVALID_ARGUMENT for an output of a node.
 */
TF_CAPI_EXPORT extern TFE_TensorHandle *TF_AbstractTensorGetEagerTensor(TF_AbstractTensor *at, TF_Status *s);

/**
 * Frees a tensor; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteAbstractTensor(TF_AbstractTensor *tensor);

/**
 * A new list without tensors. Free it with `TF_DeleteOutputList`.
 */
TF_CAPI_EXPORT extern TF_OutputList *TF_NewOutputList(void);

/**
 * Frees a list, but not its tensors; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteOutputList(TF_OutputList *o);

/**
 * Empties a list and says how many tensors it is to have.
 */
TF_CAPI_EXPORT extern void TF_OutputListSetNumOutputs(TF_OutputList *o, int num_outputs, TF_Status *s);

/**
 * The number of tensors; 0 for NULL.
 */
TF_CAPI_EXPORT extern int TF_OutputListNumOutputs(TF_OutputList *o);

/**
 * A tensor of the list, which does not belong to the list: free it with `TF_DeleteAbstractTensor`, once. NULL when there is
 * none.
 */
TF_CAPI_EXPORT extern
TF_AbstractTensor *TF_OutputListGet(TF_OutputList *o,
                                           int i);

/**
 * Adds a tensor at the end of the list, which does not own it.
 */
TF_CAPI_EXPORT extern
void TF_OutputListPushBack(TF_OutputList *o,
                           TF_AbstractTensor *tensor,
                           TF_Status *s);

/**
 * An op to be executed or traced in a context, which must live as long. Free it with `TF_DeleteAbstractOp`. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TF_AbstractOp *TF_NewAbstractOp(TF_ExecutionContext *ctx);

/**
 * Frees an op; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteAbstractOp(TF_AbstractOp *op);

/**
 * Says which op it is. NOT_FOUND for one that there is not, when it is to be executed; FAILED_PRECONDITION when it is traced
 * and has a name already.
 */
TF_CAPI_EXPORT extern
void TF_AbstractOpSetOpType(TF_AbstractOp *op,
                            const char *op_type,
                            TF_Status *s);

/**
 * Names the node that it becomes; a number is added to the name. FAILED_PRECONDITION before it has a type and when it has a
 * name; INVALID_ARGUMENT when it is to be executed.
 */
TF_CAPI_EXPORT extern
void TF_AbstractOpSetOpName(TF_AbstractOp *op,
                            const char *op_name,
                            TF_Status *s);

/**
 * Sets an attribute to an element type. FAILED_PRECONDITION before it has a type, and a name if it is traced.
 */
TF_CAPI_EXPORT extern
void TF_AbstractOpSetAttrType(TF_AbstractOp *op,
                              const char *attr_name,
                              TF_DataType value,
                              TF_Status *s);

/**
 * Executes the op, or adds a node for it, and puts its outputs, to be freed with `TF_DeleteAbstractTensor`, in `o`. If it is
 * executed, `TF_OutputListSetNumOutputs` must have said how many to expect.
 *
 * INVALID_ARGUMENT for inputs of the other kind, without type or name, or for what does not fit the op.
 */
TF_CAPI_EXPORT extern
void TF_ExecuteOperation(TF_AbstractOp *op,
                         int num_inputs,
                         TF_AbstractTensor*const *inputs,
                         TF_OutputList *o,
                         TF_Status *s);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_EAGER_C_API_UNIFIED_EXPERIMENTAL_H_ */
