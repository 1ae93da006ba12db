/* Short ways to execute ops eagerly in tests. All use one context and the harness's status. */
#ifndef CAPI_TESTS_HARNESS_EAGER_H_
#define CAPI_TESTS_HARNESS_EAGER_H_

#include <stdbool.h>
#include <stdint.h>
#include <tensorflow/c/eager/c_api.h>

#include "in_session.h"

/* The context that the functions below use. */
extern TFE_Context* context;

/* Makes the status and a context, with asynchronous execution if asked for, and prints the outcome. */
void begin_eager(bool is_async);
void end_eager(void);

/* Handles of floats 1, 2, 3, ..; of one float; of zeros of any type. The caller deletes them. */
TFE_TensorHandle* floats(int rank, const int64_t* dims);
TFE_TensorHandle* vector(int64_t count);
TFE_TensorHandle* number(float value);
TFE_TensorHandle* of_type(TF_DataType type, int64_t count);

/* A call with at most two inputs; NULL for an op that there is not. */
TFE_Op* new_op(const char* name, TFE_TensorHandle* a, TFE_TensorHandle* b);

/* Executes, prints and deletes; returns the first output, or NULL. */
TFE_TensorHandle* execute(const char* what, TFE_Op* op);

/* As `execute`, without printing anything unless it fails. */
TFE_TensorHandle* execute_quietly(const char* what, TFE_Op* op);

/* Prints the elements that a handle has, or why it has none. */
void print_handle(const char* what, TFE_TensorHandle* handle);

#endif
