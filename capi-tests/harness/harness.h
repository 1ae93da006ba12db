/* What every differential test shares: named cases, each in a process of its own, and printing of results.
 *
 * A test prints what the library did, never what it expects: tools/capi_diff.py runs one binary on two libraries and
 * compares the output case by case. Hence nothing may be printed that changes between runs (addresses, times, map
 * order). A case that kills its process is reported as "!! signal N" and the next one goes on. */
#ifndef CAPI_TESTS_HARNESS_HARNESS_H_
#define CAPI_TESTS_HARNESS_HARNESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tensorflow/c/c_api.h>

typedef struct {
    const char* name;
    void (*run)(void);
} Case;

#define N_ELEMENTS(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Runs the cases named on the command line, or all; "--list" prints their names, "--no-fork" runs them in this process
 * (for memory checkers). Returns the exit status of main: 0 unless a name is unknown. */
int run_cases(int argc, char** argv, const Case* cases, int count);

/* The argument "--data=FOLDER" of the command line, for tests that read files; "." without it. */
const char* data_folder(void);

/* Resets a status to OK and returns it: some functions of the reference leave an old error where they succeed. */
TF_Status* fresh(TF_Status* status);

/* Prints "what: CODE", and the message, if any, on a line of its own that begins with "  text:". */
void print_status(const char* what, const TF_Status* status);

/* Prints "what: CODE" alone, where the text depends on which of several threads is first. */
void print_code(const char* what, const TF_Status* status);

/* Prints bytes as text, with \xNN for what is not printable. */
void print_bytes(const void* data, size_t length);

/* Prints type, shape and elements (at most 64) of a tensor, or "NULL". */
void print_tensor(const char* what, const TF_Tensor* tensor);

/* FNV-1a hash of bytes, to compare what is too long to print. */
uint64_t hash_bytes(const void* data, size_t length);

/* Reads a file, at most `length` bytes of it (-1: all); NULL when there is none. The caller deletes the buffer. */
TF_Buffer* read_file(const char* path, long length);

/* Writes a file; exits when that fails. */
void write_file(const char* path, const void* data, size_t length);

#endif
