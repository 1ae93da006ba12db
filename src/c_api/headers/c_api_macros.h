#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

#include <stddef.h>

/* Put before declarations of functions that the shared library exports. */
#if defined(SWIG)
#define TF_CAPI_EXPORT
#elif defined(_WIN32)
#if defined(TF_COMPILE_LIBRARY)
#define TF_CAPI_EXPORT __declspec(dllexport)
#else
#define TF_CAPI_EXPORT __declspec(dllimport)
#endif
#elif defined(TF_CAPI_WEAK)
#define TF_CAPI_EXPORT __attribute__((visibility("default"), weak))
#else
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#endif

/* A truth value whose size does not depend on language or compiler: 0 or 1. */
#ifndef TF_Bool
#define TF_Bool unsigned char
#endif

/* Bytes of a struct up to the end of a member. Structs that may grow begin with their size as the caller knows it. */
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE *)0)->MEMBER))
#endif

#endif /* TENSORFLOW_C_C_API_MACROS_H_ */
