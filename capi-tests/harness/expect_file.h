/* Reads .expect files: inputs and the outputs that the reference computed from them. The format is described in
 * tools/models/expect_file.py, which writes them. */
#ifndef CAPI_TESTS_HARNESS_EXPECT_FILE_H_
#define CAPI_TESTS_HARNESS_EXPECT_FILE_H_

#include <stdbool.h>
#include <tensorflow/c/c_api.h>

enum { EXPECT_MAX_TENSORS = 16 };

/* One run: what is fed under which names ("x:0"), and what must come out. */
typedef struct {
    int n_inputs, n_outputs;
    char* input_names[EXPECT_MAX_TENSORS];
    char* output_names[EXPECT_MAX_TENSORS];
    TF_Tensor* inputs[EXPECT_MAX_TENSORS];
    TF_Tensor* outputs[EXPECT_MAX_TENSORS];
} ExpectCase;

typedef struct {
    int n_cases;
    ExpectCase* cases;
} ExpectFile;

/* Reads a file; false when there is none or it is broken. */
bool expect_read(const char* path, ExpectFile* file);

void expect_free(ExpectFile* file);

/* Compares with what was expected: type and shape must be equal; the largest difference of floats may be `tolerance`
 * times the largest expected magnitude, other types must be equal byte by byte. Prints one line; true when it passes.
 */
bool expect_compare(const char* name, const TF_Tensor* expected, const TF_Tensor* actual, double tolerance);

/* How far values of two libraries are from exact ones, over several tensors: parts of each tensor's largest magnitude. */
typedef struct {
    double squares, largest;
} ExpectDistance;

typedef struct {
    ExpectDistance ours, theirs;
    long long count;
} ExpectDistances;

/* Adds the distances of `actual` (ours) and `expected` (theirs) from `exact`, of type double. False, with a printed line,
 * when they cannot be compared. */
bool expect_add_distances(ExpectDistances* distances, const char* name, const TF_Tensor* exact, const TF_Tensor* expected,
                          const TF_Tensor* actual);

/* Whether ours are no farther than theirs: in the root mean square, and with no single element more than twice as far as
 * their farthest. Prints one line. */
bool expect_no_farther(const ExpectDistances* distances);

#endif
