/* Ops registered at run time, and their shape functions. Any thread may call any function; which objects threads may
 * share is said at each type, and none may be in use when it is deleted. Text and arrays that are passed in belong
 * to the caller and are read during the call only, unless a comment says otherwise. A function that takes a
 * TF_Status sets it on every call: to OK, or to the error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_OPS_H_
#define TENSORFLOW_C_OPS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

/**
 * An extent, maybe unknown. It belongs to who made it; one thread at a time may change it.
 */
typedef struct TF_DimensionHandle TF_DimensionHandle;

/**
 * An op under construction. One thread at a time may use it.
 */
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;

/**
 * A shape, maybe of unknown rank or extents. It belongs to who made it; one thread at a time may change it.
 */
typedef struct TF_ShapeHandle TF_ShapeHandle;

/**
 * What a shape function sees; valid during its call, on its thread.
 */
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;

/**
 * A shape function: looks at the context, sets the shapes of the outputs, or sets `status` to an error.
 */
typedef void (*ShapeInferenceFunction)(struct TF_ShapeInferenceContext *ctx, TF_Status *status);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Starts an op of this name, which is written in camel case. `TF_RegisterOpDefinition` or `TF_DeleteOpDefinitionBuilder`
 * frees the builder. NULL for NULL.
 */
TF_CAPI_EXPORT extern
TF_OpDefinitionBuilder *TF_NewOpDefinitionBuilder(const char *op_name);

/**
 * Adds the op to those of this process and frees the builder, also on failure.
 *
 * INVALID_ARGUMENT for specifications that are wrong, all of which the message names; ALREADY_EXISTS for a name that is
 * taken.
 */
TF_CAPI_EXPORT extern void TF_RegisterOpDefinition(TF_OpDefinitionBuilder *builder, TF_Status *status);

/**
 * Frees a builder that is not registered; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder *builder);

/**
 * Adds an attribute: `name: type`, with a restriction (`int >= 2`, `{float, int32}`, `{'a', 'b'}`, `numbertype`,
 * `list(type) >= 1`) and a default value (`= 3`, `= [1, 2]`) if it has them. Types are `string`, `int`, `float`, `bool`,
 * `type`, `shape`, `tensor`, `func` and `list(..)` of them.
 */
TF_CAPI_EXPORT extern
void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder *builder,
                                   const char *attr_spec);

/**
 * Adds an input: `name: type`, `name: number * type`, `name: types`, `name: Ref(type)`, where the words after the colon
 * are element types or attributes.
 */
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder *builder, const char *input_spec);

/**
 * Adds an output, said as an input is.
 */
TF_CAPI_EXPORT extern void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder *builder, const char *output_spec);

/**
 * Whether the order of the two inputs makes no difference.
 */
TF_CAPI_EXPORT extern
void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder *builder,
                                            bool is_commutative);

/**
 * Whether the op combines two or more inputs of one type and shape into one, in any order and grouping.
 */
TF_CAPI_EXPORT extern
void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder *builder,
                                          bool is_aggregate);

/**
 * Whether the op depends on more than its inputs, or does something that is seen outside: such an op is never merged with
 * another, moved or dropped.
 */
TF_CAPI_EXPORT extern
void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder *builder,
                                         bool is_stateful);

/**
 * Whether inputs may be variables without a value.
 */
TF_CAPI_EXPORT extern
void TF_OpDefinitionBuilderSetAllowsUninitializedInput(TF_OpDefinitionBuilder *builder,
                                                       bool allows_uninitialized_input);

/**
 * Says that graphs from GraphDef version `version` on should not use the op, and what to use instead.
 */
TF_CAPI_EXPORT extern
void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder *builder,
                                      int version,
                                      const char *explanation);

/**
 * Sets the function that infers the shapes of the outputs; without one graphs take no node of the op, unless
 * `TF_SetRequireShapeInferenceFns` says otherwise. It is called on any thread, when
 * graphs are built and when they run; the context is valid during the call only.
 */
TF_CAPI_EXPORT extern
void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder *builder,
                                                     ShapeInferenceFunction shape_inference_func);

/**
 * The number of inputs; 0 for NULL.
 */
TF_CAPI_EXPORT extern int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext *ctx);

/**
 * A new handle of an unknown shape. Free it with `TF_DeleteShapeHandle`.
 */
TF_CAPI_EXPORT extern TF_ShapeHandle *TF_NewShapeHandle(void);

/**
 * Puts the shape of input `i` into `handle`. INVALID_ARGUMENT when there is no such input.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext *ctx,
                                      int i,
                                      TF_ShapeHandle *handle,
                                      TF_Status *status);

/**
 * Makes a copy of a shape that of output `i`. INVALID_ARGUMENT when there is no such output.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext *ctx,
                                       int i,
                                       TF_ShapeHandle *handle,
                                       TF_Status *status);

/**
 * A new handle of the shape without dimensions. Free it with `TF_DeleteShapeHandle`.
 */
TF_CAPI_EXPORT extern TF_ShapeHandle *TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext *ctx);

/**
 * A new handle of the shape of a vector. Free it with `TF_DeleteShapeHandle`.
 */
TF_CAPI_EXPORT extern
TF_ShapeHandle *TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext *ctx,
                                                              size_t size);

/**
 * A new handle of an unknown extent. Free it with `TF_DeleteDimensionHandle`.
 */
TF_CAPI_EXPORT extern TF_DimensionHandle *TF_NewDimensionHandle(void);

/**
 * Gets an attribute that is an element type. NOT_FOUND when it is not set, INVALID_ARGUMENT when it is of another kind.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContext_GetAttrType(TF_ShapeInferenceContext *ctx,
                                          const char *attr_name,
                                          TF_DataType *val,
                                          TF_Status *status);

/**
 * The number of dimensions; -1 when it is not known.
 */
TF_CAPI_EXPORT extern
int64_t TF_ShapeInferenceContextRank(TF_ShapeInferenceContext *ctx,
                                     TF_ShapeHandle *handle);

/**
 * 1 when the number of dimensions is known, otherwise 0.
 */
TF_CAPI_EXPORT extern
int TF_ShapeInferenceContextRankKnown(TF_ShapeInferenceContext *ctx,
                                      TF_ShapeHandle *handle);

/**
 * Puts the shape with this rank into `result`. INVALID_ARGUMENT when it is known to have another.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextWithRank(TF_ShapeInferenceContext *ctx,
                                      TF_ShapeHandle *handle,
                                      int64_t rank,
                                      TF_ShapeHandle *result,
                                      TF_Status *status);

/**
 * Puts the shape into `result`. INVALID_ARGUMENT when it is known to have a lower rank.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextWithRankAtLeast(TF_ShapeInferenceContext *ctx,
                                             TF_ShapeHandle *handle,
                                             int64_t rank,
                                             TF_ShapeHandle *result,
                                             TF_Status *status);

/**
 * Puts the shape into `result`. INVALID_ARGUMENT when it is known to have a higher rank.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextWithRankAtMost(TF_ShapeInferenceContext *ctx,
                                            TF_ShapeHandle *handle,
                                            int64_t rank,
                                            TF_ShapeHandle *result,
                                            TF_Status *status);

/**
 * Puts extent `i` of a shape into `result`, counted from the end when it is negative; unknown when it is not known.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextDim(TF_ShapeInferenceContext *ctx,
                                 TF_ShapeHandle *shape_handle,
                                 int64_t i,
                                 TF_DimensionHandle *result);

/**
 * Puts dimensions `start` to `end` (not included) of a shape into `result`; negative numbers count from the end, too large
 * ones are the rank. INVALID_ARGUMENT when the end comes before the start.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextSubshape(TF_ShapeInferenceContext *ctx,
                                      TF_ShapeHandle *shape_handle,
                                      int64_t start,
                                      int64_t end,
                                      TF_ShapeHandle *result,
                                      TF_Status *status);

/**
 * Makes the shapes of all outputs unknown.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext *ctx,
                                             TF_Status *status);

/**
 * 1 when an extent is known, otherwise 0.
 */
TF_CAPI_EXPORT extern int TF_DimensionHandleValueKnown(TF_DimensionHandle *dim_handle);

/**
 * The value of an extent; -1 when it is not known.
 */
TF_CAPI_EXPORT extern int64_t TF_DimensionHandleValue(TF_DimensionHandle *dim_handle);

/**
 * Puts the dimensions of `first` and then those of `second` into `result`.
 */
TF_CAPI_EXPORT extern
void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext *ctx,
                                               TF_ShapeHandle *first,
                                               TF_ShapeHandle *second,
                                               TF_ShapeHandle *result,
                                               TF_Status *status);

/**
 * Frees a handle; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteShapeHandle(TF_ShapeHandle *handle);

/**
 * Frees a handle; NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteDimensionHandle(TF_DimensionHandle *handle);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_OPS_H_ */
