#ifndef TENSORFLOW_C_KERNELS_EXPERIMENTAL_H_
#define TENSORFLOW_C_KERNELS_EXPERIMENTAL_H_

/* TensorFlow declares functions for kernels of reference variables here, which its libraries do not export, and so neither
 * does this one. What a plug-in can call is in kernels.h. */

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/kernels.h"

#endif /* TENSORFLOW_C_KERNELS_EXPERIMENTAL_H_ */
