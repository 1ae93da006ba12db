/* Reads the signatures of a SavedModel out of the MetaGraphDef that TF_LoadSessionFromSavedModel returns.
 *
 * A signature maps names that people use ("note") to tensors in the graph ("StatefulPartitionedCall:1"). The C API
 * has no function for it; this is a minimal reader of the serialized message, for the fields it needs. */
#ifndef EXAMPLES_C_COMMON_SIGNATURE_H_
#define EXAMPLES_C_COMMON_SIGNATURE_H_

#include <stdint.h>
#include <tensorflow/c/c_api.h>

enum { SIGNATURE_MAX_RANK = 8, SIGNATURE_MAX_TENSORS = 32, SIGNATURE_MAX_NAME = 256 };

typedef struct {
    char key[SIGNATURE_MAX_NAME];  /* the name people use */
    char name[SIGNATURE_MAX_NAME]; /* the tensor's name in the graph, "operation:index"; empty if it is composite */
    TF_DataType type;
    int rank;                         /* -1 when unknown */
    int64_t dims[SIGNATURE_MAX_RANK]; /* -1 where unknown */
} SignatureTensor;

typedef struct {
    char key[SIGNATURE_MAX_NAME];
    int n_inputs, n_outputs;
    SignatureTensor inputs[SIGNATURE_MAX_TENSORS], outputs[SIGNATURE_MAX_TENSORS];
} Signature;

/* Reads up to `capacity` signatures; returns how many, or -1 when the bytes are not a MetaGraphDef. */
int read_signatures(const TF_Buffer* meta_graph, Signature* signatures, int capacity);

/* Finds a tensor among `count` by its key; NULL when there is none. */
const SignatureTensor* find_signature_tensor(const SignatureTensor* tensors, int count, const char* key);

#endif
