/* Tensors. Any thread may call any function; which objects threads may share is said at each type, and none may be
 * in use when it is deleted. Text and arrays that are passed in belong to the caller and are read during the call
 * only, unless a comment says otherwise. A function that takes a TF_Status sets it on every call: to OK, or to the
 * error.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_TF_TENSOR_H_
#define TENSORFLOW_C_TF_TENSOR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_datatype.h"
#include "tensorflow/c/tf_status.h"

/* What `struct_size` of TF_AllocatorAttributes is. */
#define TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE TF_OFFSET_OF_END(TF_AllocatorAttributes, on_host)


/**
 * Elements of one type in the order of rows, with a shape. Threads may read one tensor at the same time.
 */
typedef struct TF_Tensor TF_Tensor;

/**
 * Where a temporary tensor is wanted.
 */
typedef struct TF_AllocatorAttributes {
  /**
   * `TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE`.
   */
  size_t struct_size;
  /**
   * Not 0 for memory that the host can read and write.
   */
  unsigned char on_host;
} TF_AllocatorAttributes;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A tensor over memory of the caller: `len` bytes at `data`, in use until `deallocator` is called with `data`, `len`
 * and `deallocator_arg`. That happens exactly once, on any thread, maybe later than `TF_DeleteTensor`; right away
 * where the memory was copied because its address is not a multiple of 64. `deallocator` may be NULL. Elements of
 * `TF_STRING` are `TF_TString`.
 *
 * NULL, with the memory given back, when `len` is too short for type and shape or the shape is not valid.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TF_NewTensor(TF_DataType dtype,
                               const int64_t *dims,
                               int num_dims,
                               void *data,
                               size_t len,
                               void (*deallocator)(void *data, size_t len, void *arg),
                               void *deallocator_arg);

/**
 * The alignment in bytes from which memory is used in place.
 */
TF_CAPI_EXPORT extern size_t TF_TensorDefaultAlignment(void);

/**
 * A tensor with `len` bytes of aligned memory to be filled; its values are unspecified, strings are empty. Deleting
 * the last holder of a tensor of strings frees the strings.
 *
 * NULL when `len` is too short for type and shape, when the shape is not valid, or when memory is out.
 */
TF_CAPI_EXPORT extern
TF_Tensor *TF_AllocateTensor(TF_DataType dtype,
                                    const int64_t *dims,
                                    int num_dims,
                                    size_t len);

/**
 * The same tensor if nobody else holds its memory and the library allocated it, so that its owner may give it away;
 * otherwise NULL.
 */
TF_CAPI_EXPORT extern TF_Tensor *TF_TensorMaybeMove(TF_Tensor *tensor);

/**
 * Frees a tensor; its memory goes when nobody else holds it. NULL is ignored.
 */
TF_CAPI_EXPORT extern void TF_DeleteTensor(TF_Tensor *tensor);

/**
 * The type of the elements; 0 for NULL.
 */
TF_CAPI_EXPORT extern TF_DataType TF_TensorType(const TF_Tensor *tensor);

/**
 * Gives the tensor another shape with as many elements; any other shape is ignored.
 */
TF_CAPI_EXPORT extern void TF_SetShape(TF_Tensor *tensor, const int64_t *dims, int num_dims);

/**
 * The number of dimensions; -1 for NULL.
 */
TF_CAPI_EXPORT extern int TF_NumDims(const TF_Tensor *tensor);

/**
 * The extent of a dimension, counted from 0; -1 when there is no such dimension.
 */
TF_CAPI_EXPORT extern int64_t TF_Dim(const TF_Tensor *tensor, int dim_index);

/**
 * The number of bytes of memory; 0 for NULL.
 */
TF_CAPI_EXPORT extern size_t TF_TensorByteSize(const TF_Tensor *tensor);

/**
 * The memory; NULL for NULL. It lives as long as the tensor. Only memory that the caller made or allocated may be
 * written, and not while a run reads it.
 */
TF_CAPI_EXPORT extern void *TF_TensorData(const TF_Tensor *tensor);

/**
 * The number of elements; 0 for NULL.
 */
TF_CAPI_EXPORT extern int64_t TF_TensorElementCount(const TF_Tensor *tensor);

/**
 * Makes `to` a tensor over the memory of `from`, with another type and shape.
 *
 * INVALID_ARGUMENT when that takes another number of bytes, or elements of either are not plain bytes.
 */
TF_CAPI_EXPORT extern
void TF_TensorBitcastFrom(const TF_Tensor *from,
                          TF_DataType dtype,
                          TF_Tensor *to,
                          const int64_t *new_dims,
                          int num_new_dims,
                          TF_Status *status);

/**
 * Whether the memory is at an address that compute kernels can use.
 */
TF_CAPI_EXPORT extern bool TF_TensorIsAligned(const TF_Tensor *tensor);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_TF_TENSOR_H_ */
