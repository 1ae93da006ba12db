/* TF_Tensor: every element type, shapes, ownership of memory, bit casts, moves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/proto.h"

enum { LAST_TYPE = 31 };

static void type_sizes(void) {
    for (int type = 0; type <= LAST_TYPE; ++type)
        printf("type %d: %zu bytes\n", type, TF_DataTypeSize((TF_DataType)type));
    printf("type 101: %zu bytes\n", TF_DataTypeSize((TF_DataType)101));
}

static void allocate_each_type(void) {
    const int64_t dims[] = {2, 3};
    for (int type = 1; type <= LAST_TYPE; ++type) {
        size_t size = TF_DataTypeSize((TF_DataType)type);
        if (size == 0) continue;
        TF_Tensor* tensor = TF_AllocateTensor((TF_DataType)type, dims, 2, 6 * size);
        if (!tensor) {
            printf("type %d: NULL\n", type);
            continue;
        }
        printf("type %d: reported %d, rank %d, dims %lld %lld, %zu bytes, %lld elements, aligned %d %d\n", type,
               (int)TF_TensorType(tensor), TF_NumDims(tensor), (long long)TF_Dim(tensor, 0),
               (long long)TF_Dim(tensor, 1), TF_TensorByteSize(tensor), (long long)TF_TensorElementCount(tensor),
               TF_TensorIsAligned(tensor), (uintptr_t)TF_TensorData(tensor) % 64 == 0);
        memset(TF_TensorData(tensor), 0x5a, 6 * size);
        TF_DeleteTensor(tensor);
    }
}

static void scalars_and_empties(void) {
    const int64_t dims[] = {4, 0, 3};
    TF_Tensor* scalar = TF_AllocateTensor(TF_DOUBLE, NULL, 0, 8);
    printf("scalar: rank %d, %zu bytes, %lld element\n", TF_NumDims(scalar), TF_TensorByteSize(scalar),
           (long long)TF_TensorElementCount(scalar));
    TF_DeleteTensor(scalar);
    TF_Tensor* empty = TF_AllocateTensor(TF_FLOAT, dims, 3, 0);
    printf("empty: rank %d, dims %lld %lld %lld, %zu bytes, %lld elements\n", TF_NumDims(empty),
           (long long)TF_Dim(empty, 0), (long long)TF_Dim(empty, 1), (long long)TF_Dim(empty, 2),
           TF_TensorByteSize(empty), (long long)TF_TensorElementCount(empty));
    TF_DeleteTensor(empty);
    printf("default alignment %zu\n", TF_TensorDefaultAlignment());
}

static int n_deallocated = 0;

static void deallocate(void* data, size_t length, void* argument) {
    ++n_deallocated;
    printf("deallocate: %zu bytes, argument '%s', first byte %02x\n", length, (const char*)argument,
           length ? *(unsigned char*)data : 0);
}

static void foreign(const char* what, TF_DataType type, const int64_t* dims, int rank, void* data, size_t length) {
    n_deallocated = 0;
    TF_Tensor* tensor = TF_NewTensor(type, dims, rank, data, length, deallocate, "mine");
    printf("%s: %s", what, tensor ? "a tensor" : "NULL");
    if (tensor) printf(", same memory %d, %zu bytes", TF_TensorData(tensor) == data, TF_TensorByteSize(tensor));
    printf(", deallocated %d\n", n_deallocated);
    if (tensor) print_tensor(what, tensor);
    TF_DeleteTensor(tensor);
    printf("after delete: deallocated %d\n", n_deallocated);
}

static void foreign_memory(void) {
    char* block = NULL;
    if (posix_memalign((void**)&block, 64, 256) != 0) return;
    for (int i = 0; i < 256; ++i) block[i] = (char)i;
    const int64_t dims[] = {2, 2};
    foreign("aligned", TF_INT32, dims, 2, block, 16);
    foreign("not aligned", TF_INT32, dims, 2, block + 4, 16);
    foreign("more bytes than needed", TF_INT32, dims, 2, block, 32);
    foreign("bytes at odd address", TF_UINT8, dims, 2, block + 1, 4);
    free(block);
}

static void foreign_memory_too_small(void) {
    char block[64] = {0};
    const int64_t dims[] = {2, 2};
    foreign("too small", TF_INT32, dims, 2, block, 12);
}

static void scalar_without_bytes(void) {
    TF_Tensor* tensor = TF_NewTensor(TF_FLOAT, NULL, 0, NULL, 0, deallocate, "none");
    printf("%s\n", tensor ? "a tensor" : "NULL");
    TF_DeleteTensor(tensor);
}

static void empty_without_bytes(void) {
    const int64_t dims[] = {0};
    TF_Tensor* tensor = TF_NewTensor(TF_FLOAT, dims, 1, NULL, 0, deallocate, "none");
    print_tensor("empty", tensor);
    TF_DeleteTensor(tensor);
}

static void negative_dimension(void) {
    const int64_t dims[] = {-1};
    TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, 1, 4);
    printf("%s\n", tensor ? "a tensor" : "NULL");
    TF_DeleteTensor(tensor);
}

static void negative_dimension_foreign(void) {
    char block[64] = {0};
    const int64_t dims[] = {-1};
    TF_Tensor* tensor = TF_NewTensor(TF_FLOAT, dims, 1, block, 4, deallocate, "mine");
    printf("%s\n", tensor ? "a tensor" : "NULL");
    TF_DeleteTensor(tensor);
}

static void overflowing_shape(void) {
    const int64_t dims[] = {(int64_t)1 << 40, (int64_t)1 << 40};
    TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, 2, 4);
    printf("%s\n", tensor ? "a tensor" : "NULL");
}

static void move(void) {
    TF_Tensor* tensor = int_scalar(7);
    TF_Tensor* moved = TF_TensorMaybeMove(tensor);
    printf("moved: %s\n", moved ? "a tensor" : "NULL");
    if (moved) print_tensor("moved", moved);
    TF_DeleteTensor(moved);
}

static void move_foreign(void) {
    char* block = NULL;
    if (posix_memalign((void**)&block, 64, 64) != 0) return;
    memset(block, 0, 64);
    const int64_t dims[] = {2};
    TF_Tensor* tensor = TF_NewTensor(TF_INT32, dims, 1, block, 8, deallocate, "mine");
    TF_Tensor* moved = TF_TensorMaybeMove(tensor);
    printf("moved: %s\n", moved ? "a tensor" : "NULL");
    TF_DeleteTensor(moved ? moved : tensor);
    free(block);
}

static void set_shape(void) {
    const int64_t dims[] = {2, 3}, other[] = {3, 2, 1};
    const float values[] = {1, 2, 3, 4, 5, 6};
    TF_Tensor* tensor = tensor_of(TF_FLOAT, 2, dims, values);
    TF_SetShape(tensor, other, 3);
    print_tensor("reshaped", tensor);
    TF_DeleteTensor(tensor);
}

static void bitcast(const char* what, TF_DataType from_type, TF_DataType to_type, int rank, const int64_t* dims) {
    const int64_t two[] = {2, 2};
    const int32_t values[] = {0x3f800000, 0x40000000, 0x40400000, (int32_t)0xc0800000};
    const int64_t wide[] = {1, 2, 3, 4};
    TF_Tensor* from = tensor_of(from_type, 2, two, from_type == TF_INT64 ? (const void*)wide : (const void*)values);
    TF_Tensor* to = TF_AllocateTensor(to_type, NULL, 0, TF_DataTypeSize(to_type));
    TF_Status* status = TF_NewStatus();
    TF_TensorBitcastFrom(from, to_type, to, dims, rank, status);
    print_status(what, status);
    if (TF_GetCode(status) == TF_OK) {
        print_tensor(what, to);
        printf("shares memory %d\n", TF_TensorData(from) == TF_TensorData(to));
    }
    TF_DeleteStatus(status);
    TF_DeleteTensor(from);
    TF_DeleteTensor(to);
}

static void bitcasts(void) {
    const int64_t two[] = {2, 2}, four[] = {4}, eight[] = {8}, three[] = {3};
    bitcast("int32 to float", TF_INT32, TF_FLOAT, 2, two);
    bitcast("new shape", TF_INT32, TF_FLOAT, 1, four);
    bitcast("narrower", TF_INT64, TF_INT32, 1, eight);
    bitcast("wrong count", TF_INT32, TF_FLOAT, 1, three);
    bitcast("wrong size", TF_INT32, TF_INT64, 1, four);
}

static void from_proto(const char* what, Message* proto) {
    TF_Status* status = TF_NewStatus();
    TF_Buffer* buffer = TF_NewBufferFromString(proto->data, proto->length);
    TF_Tensor* tensor = int_scalar(0);
    TF_TensorFromProto(buffer, tensor, status);
    print_status(what, status);
    if (TF_GetCode(status) == TF_OK) print_tensor(what, tensor);
    TF_DeleteTensor(tensor);
    TF_DeleteBuffer(buffer);
    TF_DeleteStatus(status);
    message_free(proto);
}

static void from_protos(void) {
    Message proto = {0}, shape = {0}, dim = {0};
    message_int(&dim, 1, 3);
    message_part(&shape, 2, &dim);
    message_int(&proto, 1, TF_INT32);
    message_bytes(&proto, 2, shape.data, shape.length);
    message_int(&proto, 7, 5); /* int_val; the last value fills the rest */
    message_int(&proto, 7, 6);
    from_proto("filled up", &proto);
    message_int(&proto, 1, TF_FLOAT);
    message_bytes(&proto, 2, shape.data, shape.length);
    message_bytes(&proto, 4, "\0\0\x80?\0\0\0@\0\0@@", 12);
    from_proto("content", &proto);
    message_int(&proto, 1, TF_FLOAT);
    message_bytes(&proto, 2, shape.data, shape.length);
    message_bytes(&proto, 4, "\0\0\x80?", 4);
    from_proto("content too short", &proto);
    message_int(&proto, 1, TF_STRING);
    message_text(&proto, 8, "text");
    from_proto("string", &proto);
    message_int(&proto, 1, TF_FLOAT);
    from_proto("no value", &proto);
    message_text(&proto, 1, "not a tensor");
    from_proto("garbage", &proto);
    message_free(&shape);
}

static void set_attr_from_scalar_without_bytes(void) {
    TF_Status* status = TF_NewStatus();
    TF_Graph* graph = TF_NewGraph();
    TF_Tensor* tensor = TF_NewTensor(TF_FLOAT, NULL, 0, NULL, 0, deallocate, "none");
    TF_OperationDescription* description = TF_NewOperation(graph, "Const", "c");
    TF_SetAttrTensor(description, "value", tensor, status);
    print_status("value", status);
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    finish_and_print(description, "c");
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
}

static const Case CASES[] = {
    {"type_sizes", type_sizes},
    {"allocate_each_type", allocate_each_type},
    {"scalars_and_empties", scalars_and_empties},
    {"foreign_memory", foreign_memory},
    {"foreign_memory_too_small", foreign_memory_too_small},
    {"scalar_without_bytes", scalar_without_bytes},
    {"empty_without_bytes", empty_without_bytes},
    {"negative_dimension", negative_dimension},
    {"negative_dimension_foreign", negative_dimension_foreign},
    {"overflowing_shape", overflowing_shape},
    {"move", move},
    {"move_foreign", move_foreign},
    {"set_shape", set_shape},
    {"bitcasts", bitcasts},
    {"from_protos", from_protos},
    {"set_attr_from_scalar_without_bytes", set_attr_from_scalar_without_bytes},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
