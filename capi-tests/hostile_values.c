/* Values that a reasonable program would not pass: shapes that overflow, types that are none, lists without end, names of
 * any bytes, feeds that do not fit. Ours only: each must give an error and not end the process. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/expect.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/proto.h"

static const int64_t HUGE_DIMS[][2] = {
    {INT64_C(1) << 40, INT64_C(1) << 40}, {INT64_MAX, 2}, {INT64_MAX, INT64_MAX}, {INT64_MIN, 1}, {-5, 3},
    {INT64_C(1) << 62, 0},
};

static TF_Output dims_constant(const char* name, const int64_t* dims) {
    const int64_t two = 2;
    return constant(graph, name, tensor_of(TF_INT64, 1, &two, dims));
}

static TF_Output with_index_type(const char* op, const char* name, TF_Output a, TF_Output b, const char* attr) {
    TF_OperationDescription* description = TF_NewOperation(graph, op, name);
    TF_AddInput(description, a);
    TF_AddInput(description, b);
    if (attr) TF_SetAttrType(description, attr, TF_INT64);
    TF_Operation* operation = TF_FinishOperation(description, status);
    TF_SetStatus(status, TF_OK, "");
    return (TF_Output){operation, 0};
}

/* Shapes with more elements than there are addresses, through ops that make tensors of a given shape. */
static void shapes_that_overflow(void) {
    TF_Output one = float_constant(graph, "one", 1);
    for (int i = 0; i < N_ELEMENTS(HUGE_DIMS); ++i) {
        char name[32];
        snprintf(name, sizeof name, "dims%d", i);
        TF_Output dims = dims_constant(name, HUGE_DIMS[i]);
        static const struct {
            const char *op, *attr;
            bool value_first;
        } OPS[] = {{"Fill", "index_type", false}, {"BroadcastTo", "Tidx", true}, {"Reshape", "Tshape", true}};
        for (int o = 0; o < N_ELEMENTS(OPS); ++o) {
            snprintf(name, sizeof name, "%s%d", OPS[o].op, i);
            TF_Output output = OPS[o].value_first ? with_index_type(OPS[o].op, name, one, dims, OPS[o].attr)
                                                  : with_index_type(OPS[o].op, name, dims, one, OPS[o].attr);
            if (!output.oper) continue; /* refused while building: as good */
            try_fetch(session, output, 0, status);
            bool is_empty = HUGE_DIMS[i][1] == 0 && strcmp(OPS[o].op, "Reshape") != 0;
            if (!is_empty) EXPECT_ERROR(status);
            TF_SetStatus(status, TF_OK, "");
        }
        TF_OperationDescription* description = TF_NewOperation(graph, "RandomUniform", "random");
        TF_AddInput(description, dims);
        TF_SetAttrType(description, "dtype", TF_FLOAT);
        TF_Operation* random = TF_FinishOperation(description, status);
        TF_SetStatus(status, TF_OK, "");
        if (random) {
            try_fetch(session, (TF_Output){random, 0}, 0, status);
            if (HUGE_DIMS[i][1] != 0) EXPECT_ERROR(status);
            TF_SetStatus(status, TF_OK, "");
        }
    }
    EXPECT(process_number("VmHWM") < 2000000);
}

/* Tensors of such shapes, or with too little memory, or of types that are none. */
static void tensors_that_cannot_be(void) {
    for (int i = 0; i < N_ELEMENTS(HUGE_DIMS); ++i) {
        if (HUGE_DIMS[i][1] == 0) continue;
        EXPECT(TF_AllocateTensor(TF_FLOAT, HUGE_DIMS[i], 2, 16) == NULL);
        EXPECT(TF_AllocateTensor(TF_FLOAT, HUGE_DIMS[i], 2, SIZE_MAX) == NULL);
        EXPECT(TF_AllocateTensor(TF_STRING, HUGE_DIMS[i], 2, SIZE_MAX) == NULL);
    }
    const int64_t two = 2;
    EXPECT(TF_AllocateTensor(TF_FLOAT, &two, 1, 7) == NULL);
    static const int TYPES[] = {0, -1, 34, 99, 101, 127, 1000, INT_MAX, INT_MIN};
    for (int i = 0; i < N_ELEMENTS(TYPES); ++i) {
        TF_Tensor* tensor = TF_AllocateTensor((TF_DataType)TYPES[i], &two, 1, 64);
        TF_DeleteTensor(tensor);
        EXPECT(TF_DataTypeSize((TF_DataType)TYPES[i]) == 0);
        TF_OperationDescription* description = TF_NewOperation(graph, "Placeholder", "p");
        TF_SetAttrType(description, "dtype", (TF_DataType)TYPES[i]);
        TF_Operation* operation = TF_FinishOperation(description, status);
        EXPECT(operation == NULL || TYPES[i] == 101);
        TF_SetStatus(status, TF_OK, "");
    }
}

/* Adds a TensorProto with this shape and content to nothing and decodes it. */
static void decode(int type, int rank, const int64_t* dims, const void* content, size_t length, bool is_good) {
    Message proto = {0}, shape = {0};
    message_int(&proto, 1, type);
    for (int i = 0; i < rank; ++i) {
        Message dim = {0};
        message_int(&dim, 1, dims[i]);
        message_part(&shape, 2, &dim);
    }
    message_part(&proto, 2, &shape);
    if (content) message_bytes(&proto, 4, content, length);
    TF_Buffer* buffer = TF_NewBufferFromString(proto.data, proto.length);
    TF_Tensor* tensor = float_scalar(0);
    TF_TensorFromProto(buffer, tensor, status);
    EXPECT((TF_GetCode(status) == TF_OK) == is_good);
    TF_SetStatus(status, TF_OK, "");
    TF_DeleteTensor(tensor);
    TF_DeleteBuffer(buffer);
    message_free(&proto);
}

static void tensor_protos(void) {
    const int64_t three = 3, minus = -1;
    decode(TF_FLOAT, 1, &three, "abcdabcdabcd", 12, true);
    decode(TF_FLOAT, 1, &three, "abcdabcdabc", 11, false);
    decode(TF_FLOAT, 1, &three, "abcdabcdabcda", 13, false);
    decode(TF_FLOAT, 1, &minus, "abcd", 4, false);
    decode(0, 1, &three, "abcd", 4, false);
    decode(999, 1, &three, "abcd", 4, false);
    decode(TF_STRING, 1, &three, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 9, false);
    decode(TF_STRING, 1, &three, "\x7f\x01\x01" "a", 4, false);
    for (int i = 0; i < N_ELEMENTS(HUGE_DIMS); ++i)
        if (HUGE_DIMS[i][1] != 0) decode(TF_FLOAT, 2, HUGE_DIMS[i], "abcd", 4, false);
}

/* Lists of a million entries, set and read back. */
static void long_lists(void) {
    enum { COUNT = 1000000 };
    int64_t* numbers = malloc(COUNT * sizeof *numbers);
    const void** texts = malloc(COUNT * sizeof *texts);
    size_t* lengths = malloc(COUNT * sizeof *lengths);
    TF_DataType* types = malloc(COUNT * sizeof *types);
    for (int i = 0; i < COUNT; ++i) numbers[i] = i, texts[i] = "abc", lengths[i] = 3, types[i] = TF_FLOAT;
    TF_OperationDescription* description = TF_NewOperation(graph, "NoOp", "n");
    TF_SetAttrIntList(description, "_numbers", numbers, COUNT);
    TF_SetAttrStringList(description, "_texts", texts, lengths, COUNT);
    TF_SetAttrTypeList(description, "_types", types, COUNT);
    TF_Output node = finish(description);
    EXPECT(TF_OperationGetAttrMetadata(node.oper, "_texts", status).list_size == COUNT);
    TF_OperationGetAttrIntList(node.oper, "_numbers", numbers, COUNT, status);
    EXPECT_CODE(status, TF_OK);
    EXPECT(numbers[COUNT - 1] == COUNT - 1);
    TF_Buffer* def = exported(graph);
    EXPECT(def && def->length > COUNT);
    TF_DeleteBuffer(def);
    free(numbers), free(texts), free(lengths), free(types);
}

/* Feeds of other types and shapes than their placeholders. */
static void feeds_that_do_not_fit(void) {
    const int64_t dims[] = {2, 3};
    TF_Output x = shaped_placeholder(graph, "x", TF_FLOAT, 2, dims), y = unary(graph, "Neg", "y", x);
    TF_Output product = binary(graph, "Mul", "m", x, y);
    const int64_t others[] = {3, 5, 0, 7};
    for (int type = TF_FLOAT; type <= TF_UINT64; ++type) {
        if (type == TF_RESOURCE || type == TF_VARIANT) continue;
        for (int rank = 0; rank <= 4; ++rank) {
            size_t size = TF_DataTypeSize((TF_DataType)type), count = rank > 2 ? 0 : rank == 2 ? 15 : rank == 1 ? 3 : 1;
            if (type == TF_STRING) size = sizeof(TF_TString);
            TF_Tensor *feed = TF_AllocateTensor((TF_DataType)type, others, rank, size * count), *result = NULL;
            if (!EXPECT(feed != NULL)) continue;
            memset(TF_TensorData(feed), 0, size * count);
            TF_SessionRun(session, NULL, &x, &feed, 1, &y, &result, 1, NULL, 0, NULL, status);
            if (type != TF_FLOAT) EXPECT_ERROR(status);
            TF_SetStatus(status, TF_OK, "");
            TF_DeleteTensor(result);
            result = NULL;
            TF_SessionRun(session, NULL, &y, &feed, 1, &product, &result, 1, NULL, 0, NULL, status);
            EXPECT_ERROR(status);
            TF_DeleteTensor(result);
            TF_DeleteTensor(feed);
        }
    }
}

/* Names that are long, empty, or not UTF-8. */
static void odd_names(void) {
    char* long_name = malloc(1 << 20);
    memset(long_name, 'a', 1 << 20);
    long_name[(1 << 20) - 1] = 0;
    const char* const names[] = {"", "\xff\xfe\xc0", "a b", "a:0", "^a", "a\n", "..", "/", "-", long_name, "%s%n%d"};
    for (int i = 0; i < N_ELEMENTS(names); ++i) {
        TF_OperationDescription* description = TF_NewOperation(graph, "NoOp", names[i]);
        TF_SetDevice(description, names[i]);
        TF_Operation* operation = TF_FinishOperation(description, status);
        if (operation) EXPECT(strlen(TF_OperationName(operation)) >= strlen(names[i]));
        TF_SetStatus(status, TF_OK, "");
        TF_OperationDescription* unknown = TF_NewOperation(graph, names[i], "b");
        EXPECT(TF_FinishOperation(unknown, status) == NULL);
        TF_SetStatus(status, TF_OK, "");
        TF_GraphOperationByName(graph, names[i]);
        const char* tags[] = {names[i]};
        TF_SessionOptions* options = TF_NewSessionOptions();
        TF_Graph* other = TF_NewGraph();
        EXPECT(TF_LoadSessionFromSavedModel(options, NULL, names[i], tags, 1, other, NULL, status) == NULL);
        EXPECT_ERROR(status);
        TF_DeleteGraph(other);
        TF_DeleteSessionOptions(options);
    }
    TF_Buffer* def = exported(graph);
    TF_DeleteBuffer(def);
    free(long_name);
}

IN_NEW_SESSION(shapes_that_overflow)
IN_NEW_SESSION(tensors_that_cannot_be)
IN_NEW_SESSION(tensor_protos)
IN_NEW_SESSION(long_lists)
IN_NEW_SESSION(feeds_that_do_not_fit)
IN_NEW_SESSION(odd_names)

static const Case CASES[] = {
    CASE(shapes_that_overflow), CASE(tensors_that_cannot_be), CASE(tensor_protos),
    CASE(long_lists), CASE(feeds_that_do_not_fit), CASE(odd_names),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
