/* The types of tensor elements.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_TF_DATATYPE_H_
#define TENSORFLOW_C_TF_DATATYPE_H_

#include <stddef.h>
#include "tensorflow/c/c_api_macros.h"

/**
 * The type of a tensor's elements.
 */
typedef enum TF_DataType {
  /**
   * 32-bit floating point.
   */
  TF_FLOAT = 1,
  /**
   * 64-bit floating point.
   */
  TF_DOUBLE = 2,
  /**
   * 32-bit integer.
   */
  TF_INT32 = 3,
  /**
   * 8-bit integer without sign.
   */
  TF_UINT8 = 4,
  /**
   * 16-bit integer.
   */
  TF_INT16 = 5,
  /**
   * 8-bit integer.
   */
  TF_INT8 = 6,
  /**
   * Byte strings: each element is a `TF_TString`.
   */
  TF_STRING = 7,
  /**
   * Two 32-bit floats: real part, imaginary part.
   */
  TF_COMPLEX64 = 8,
  /**
   * The old name of `TF_COMPLEX64`.
   */
  TF_COMPLEX = 8,
  /**
   * 64-bit integer.
   */
  TF_INT64 = 9,
  /**
   * A byte that is 0 or 1.
   */
  TF_BOOL = 10,
  /**
   * Quantized 8-bit integer.
   */
  TF_QINT8 = 11,
  /**
   * Quantized 8-bit integer without sign.
   */
  TF_QUINT8 = 12,
  /**
   * Quantized 32-bit integer.
   */
  TF_QINT32 = 13,
  /**
   * The upper half of a 32-bit float.
   */
  TF_BFLOAT16 = 14,
  /**
   * Quantized 16-bit integer.
   */
  TF_QINT16 = 15,
  /**
   * Quantized 16-bit integer without sign.
   */
  TF_QUINT16 = 16,
  /**
   * 16-bit integer without sign.
   */
  TF_UINT16 = 17,
  /**
   * Two 64-bit floats: real part, imaginary part.
   */
  TF_COMPLEX128 = 18,
  /**
   * 16-bit floating point of IEEE 754.
   */
  TF_HALF = 19,
  /**
   * A handle of a resource; in a program's memory the serialized handle.
   */
  TF_RESOURCE = 20,
  /**
   * Values of any type, such as tensor lists; opaque to programs.
   */
  TF_VARIANT = 21,
  /**
   * 32-bit integer without sign.
   */
  TF_UINT32 = 22,
  /**
   * 64-bit integer without sign.
   */
  TF_UINT64 = 23,
  /**
   * 8-bit float, 5 bits of exponent, 2 of mantissa.
   */
  TF_FLOAT8_E5M2 = 24,
  /**
   * 8-bit float, 4 bits of exponent, 3 of mantissa, no infinities.
   */
  TF_FLOAT8_E4M3FN = 25,
  /**
   * As `TF_FLOAT8_E4M3FN`, one NaN and no negative zero.
   */
  TF_FLOAT8_E4M3FNUZ = 26,
  /**
   * As `TF_FLOAT8_E4M3FNUZ`, exponent bias 11.
   */
  TF_FLOAT8_E4M3B11FNUZ = 27,
  /**
   * As `TF_FLOAT8_E5M2`, no infinities, one NaN and no negative zero.
   */
  TF_FLOAT8_E5M2FNUZ = 28,
  /**
   * 4-bit integer, one to a byte.
   */
  TF_INT4 = 29,
  /**
   * 4-bit integer without sign, one to a byte.
   */
  TF_UINT4 = 30,
  /**
   * 2-bit integer, one to a byte.
   */
  TF_INT2 = 31,
  /**
   * 2-bit integer without sign, one to a byte.
   */
  TF_UINT2 = 32,
  /**
   * 4-bit float, 2 bits of exponent, 1 of mantissa, one to a byte.
   */
  TF_FLOAT4_E2M1FN = 33,
} TF_DataType;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Bytes of an element; 0 for `TF_STRING`, `TF_RESOURCE`, `TF_VARIANT`, and for numbers that are no type.
 */
TF_CAPI_EXPORT extern size_t TF_DataTypeSize(TF_DataType dt);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /*TENSORFLOW_C_TF_DATATYPE_H_ */
