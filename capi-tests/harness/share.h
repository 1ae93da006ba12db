/* Several threads that do the same with one object, many times. */
#ifndef CAPI_TESTS_HARNESS_SHARE_H_
#define CAPI_TESTS_HARNESS_SHARE_H_

#include <stdint.h>
#include <tensorflow/c/c_api.h>

enum { N_THREADS = 4, TURNS = 200 };

/* A use of an object: a number that is the same every time. */
typedef uint64_t (*Use)(void* object, TF_Status* result);

/* Uses an object alone, then in all threads at once; prints how often the answer was another than the first. */
void share(const char* what, Use use, void* object);

/* Answers. NULL gives 0; buffers and tensors are deleted. */
uint64_t hash_text(const char* text);
uint64_t hash_and_delete(TF_Buffer* buffer);
uint64_t hash_of_tensor(TF_Tensor* tensor);

#endif
