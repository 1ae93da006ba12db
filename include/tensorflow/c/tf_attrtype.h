/* The kinds of attributes.
 *
 * Written by `cargo xtask headers` from the sources of the library. */

#ifndef TENSORFLOW_C_TF_ATTRTYPE_H_
#define TENSORFLOW_C_TF_ATTRTYPE_H_

/**
 * The kind of an attribute's value.
 */
typedef enum TF_AttrType {
  /**
   * A string of bytes.
   */
  TF_ATTR_STRING = 0,
  /**
   * An integer.
   */
  TF_ATTR_INT = 1,
  /**
   * A float.
   */
  TF_ATTR_FLOAT = 2,
  /**
   * A truth value.
   */
  TF_ATTR_BOOL = 3,
  /**
   * An element type.
   */
  TF_ATTR_TYPE = 4,
  /**
   * A shape.
   */
  TF_ATTR_SHAPE = 5,
  /**
   * A tensor.
   */
  TF_ATTR_TENSOR = 6,
  /**
   * The name of an attribute of the surrounding function.
   */
  TF_ATTR_PLACEHOLDER = 7,
  /**
   * A function.
   */
  TF_ATTR_FUNC = 8,
} TF_AttrType;

#endif  /*TENSORFLOW_C_TF_ATTRTYPE_H_ */
