#include "expect_file.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 16, FORMAT_VERSION = 1 };

static bool read_exactly(FILE* file, void* data, size_t length) {
    return length == 0 || fread(data, length, 1, file) == 1;
}

static bool read_name(FILE* file, char** name) {
    uint32_t length = 0;
    if (!read_exactly(file, &length, 4) || length > 4096) return false;
    *name = calloc(length + 1, 1);
    return *name && read_exactly(file, *name, length);
}

static bool read_tensor(FILE* file, char** name, TF_Tensor** tensor) {
    uint32_t type = 0, rank = 0;
    uint64_t length = 0;
    int64_t dims[MAX_RANK];
    if (!read_name(file, name) || !read_exactly(file, &type, 4) || !read_exactly(file, &rank, 4)) return false;
    if (rank > MAX_RANK || !read_exactly(file, dims, 8 * rank) || !read_exactly(file, &length, 8)) return false;
    *tensor = TF_AllocateTensor((TF_DataType)type, dims, (int)rank, (size_t)length);
    return *tensor && TF_TensorByteSize(*tensor) == length &&
           read_exactly(file, TF_TensorData(*tensor), (size_t)length);
}

static bool read_case(FILE* file, ExpectCase* one) {
    uint32_t counts[2] = {0, 0};
    if (!read_exactly(file, counts, 8) || counts[0] > EXPECT_MAX_TENSORS || counts[1] > EXPECT_MAX_TENSORS)
        return false;
    one->n_inputs = (int)counts[0];
    one->n_outputs = (int)counts[1];
    for (int i = 0; i < one->n_inputs; ++i) {
        if (!read_tensor(file, &one->input_names[i], &one->inputs[i])) return false;
    }
    for (int i = 0; i < one->n_outputs; ++i) {
        if (!read_tensor(file, &one->output_names[i], &one->outputs[i])) return false;
    }
    return true;
}

static bool read_cases(FILE* file, ExpectFile* result) {
    char magic[8];
    uint32_t header[2];
    if (!read_exactly(file, magic, 8) || memcmp(magic, "FFEXPECT", 8) != 0) return false;
    if (!read_exactly(file, header, 8) || header[0] != FORMAT_VERSION || header[1] > 1000000) return false;
    result->cases = calloc(header[1], sizeof *result->cases);
    if (!result->cases) return false;
    for (result->n_cases = 0; result->n_cases < (int)header[1]; ++result->n_cases) {
        if (!read_case(file, &result->cases[result->n_cases])) return false;
    }
    return true;
}

bool expect_read(const char* path, ExpectFile* result) {
    memset(result, 0, sizeof *result);
    FILE* file = fopen(path, "rb");
    if (!file) return false;
    bool ok = read_cases(file, result);
    fclose(file);
    if (!ok) expect_free(result);
    return ok;
}

void expect_free(ExpectFile* file) {
    for (int c = 0; c < file->n_cases; ++c) {
        for (int i = 0; i < EXPECT_MAX_TENSORS; ++i) {
            free(file->cases[c].input_names[i]);
            free(file->cases[c].output_names[i]);
            TF_DeleteTensor(file->cases[c].inputs[i]);
            TF_DeleteTensor(file->cases[c].outputs[i]);
        }
    }
    free(file->cases);
    memset(file, 0, sizeof *file);
}

static bool same_shape(const TF_Tensor* a, const TF_Tensor* b) {
    bool same = TF_TensorType(a) == TF_TensorType(b) && TF_NumDims(a) == TF_NumDims(b);
    for (int i = 0; same && i < TF_NumDims(a); ++i) same = TF_Dim(a, i) == TF_Dim(b, i);
    return same;
}

bool expect_compare(const char* name, const TF_Tensor* expected, const TF_Tensor* actual, double tolerance) {
    if (!actual || !same_shape(expected, actual)) {
        printf("  %s: FAILED, another type or shape\n", name);
        return false;
    }
    int64_t count = TF_TensorElementCount(expected);
    if (TF_TensorType(expected) != TF_FLOAT) {
        bool same = memcmp(TF_TensorData(expected), TF_TensorData(actual), TF_TensorByteSize(expected)) == 0;
        printf("  %s: %s\n", name, same ? "equal" : "FAILED, other values");
        return same;
    }
    const float *e = TF_TensorData(expected), *a = TF_TensorData(actual);
    double magnitude = 0.0, difference = 0.0;
    for (int64_t i = 0; i < count; ++i) {
        double d = fabs((double)e[i] - (double)a[i]);
        if (fabs(e[i]) > magnitude) magnitude = fabs(e[i]);
        if (isnan(d) && !(isnan(e[i]) && isnan(a[i]))) d = e[i] == a[i] ? 0.0 : INFINITY;
        if (d > difference) difference = d;
    }
    bool ok = difference <= tolerance * magnitude;
    printf("  %s: %s, largest difference %.3g of magnitude %.3g (%.2g)\n", name, ok ? "equal" : "FAILED", difference,
           magnitude, magnitude > 0 ? difference / magnitude : 0.0);
    return ok;
}

static void add_distance(ExpectDistance* distance, const TF_Tensor* exact, const TF_Tensor* values) {
    int64_t count = TF_TensorElementCount(exact);
    const double* e = TF_TensorData(exact);
    const float* v = TF_TensorData(values);
    double magnitude = 0.0;
    for (int64_t i = 0; i < count; ++i) magnitude = fmax(magnitude, fabs(e[i]));
    if (magnitude == 0.0) magnitude = 1.0;
    for (int64_t i = 0; i < count; ++i) {
        double d = fabs((double)v[i] - e[i]) / magnitude;
        if (!(d <= distance->largest)) distance->largest = isnan(d) ? INFINITY : d;
        distance->squares += d * d;
    }
}

bool expect_add_distances(ExpectDistances* distances, const char* name, const TF_Tensor* exact, const TF_Tensor* expected,
                          const TF_Tensor* actual) {
    bool comparable = actual && same_shape(expected, actual) && TF_TensorType(actual) == TF_FLOAT &&
                      TF_TensorType(exact) == TF_DOUBLE &&
                      TF_TensorElementCount(exact) == TF_TensorElementCount(actual);
    if (!comparable) {
        printf("  %s: FAILED, not comparable with the exact values\n", name);
        return false;
    }
    add_distance(&distances->ours, exact, actual);
    add_distance(&distances->theirs, exact, expected);
    distances->count += TF_TensorElementCount(exact);
    return true;
}

bool expect_no_farther(const ExpectDistances* distances) {
    const ExpectDistance *ours = &distances->ours, *theirs = &distances->theirs;
    double count = distances->count ? (double)distances->count : 1.0;
    bool ok = ours->squares <= theirs->squares && ours->largest <= 2.0 * theirs->largest;
    printf("  %s the exact values: %.3g in the mean, %.3g at most; the expected ones %.3g and %.3g\n",
           ok ? "no farther from" : "FAILED, farther from", sqrt(ours->squares / count), ours->largest,
           sqrt(theirs->squares / count), theirs->largest);
    return ok;
}
