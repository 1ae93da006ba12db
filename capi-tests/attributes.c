/* Every setter of attributes with its getters. Attributes whose names begin with an underscore may hold anything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/print_graph.h"
#include "harness/proto.h"

static TF_Graph* graph;
static TF_Status* status;
static int n_operations = 0;

static TF_OperationDescription* begin(void) {
    char name[32];
    snprintf(name, sizeof name, "op_%d", n_operations++);
    return TF_NewOperation(graph, "NoOp", name);
}

/* Prints the metadata of an attribute and its value as a serialized message. */
static void print_attr(TF_Operation* operation, const char* name) {
    TF_AttrMetadata m = TF_OperationGetAttrMetadata(operation, name, fresh(status));
    print_status(name, status);
    if (TF_GetCode(status) != TF_OK) return;
    printf("  list %d, list size %lld, type %d, total size %lld\n", m.is_list, (long long)m.list_size, (int)m.type,
           (long long)m.total_size);
    TF_Buffer* buffer = TF_NewBuffer();
    TF_OperationGetAttrValueProto(operation, name, buffer, fresh(status));
    if (TF_GetCode(status) != TF_OK) print_status("proto", status);
    printf("  ");
    print_attr_value(buffer->data, buffer->length);
    printf("\n");
    TF_DeleteBuffer(buffer);
}

static void strings(void) {
    TF_OperationDescription* description = begin();
    TF_SetAttrString(description, "_s", "te\0xt", 5);
    TF_SetAttrString(description, "_empty", "", 0);
    const void* values[] = {"one", "", "three"};
    const size_t lengths[] = {3, 0, 5};
    TF_SetAttrStringList(description, "_list", values, lengths, 3);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    print_attr(operation, "_s");
    print_attr(operation, "_empty");
    print_attr(operation, "_list");
    char text[16] = "................";
    TF_OperationGetAttrString(operation, "_s", text, 5, fresh(status));
    print_status("whole", status);
    print_bytes(text, 6);
    memset(text, '.', sizeof text);
    TF_OperationGetAttrString(operation, "_s", text, 2, fresh(status));
    print_status("\npart", status);
    print_bytes(text, 6);
    void* found[3];
    size_t sizes[3];
    char storage[16];
    TF_OperationGetAttrStringList(operation, "_list", found, sizes, 3, storage, sizeof storage, fresh(status));
    print_status("\nlist", status);
    for (int i = 0; i < 3; ++i) {
        printf("  %zu ", sizes[i]);
        print_bytes(found[i], sizes[i]);
        printf("\n");
    }
    TF_OperationGetAttrStringList(operation, "_list", found, sizes, 3, storage, 4, fresh(status));
    print_status("little storage", status);
    TF_OperationGetAttrStringList(operation, "_list", found, sizes, 1, storage, 16, fresh(status));
    print_status("one of three", status);
}

static void numbers(void) {
    TF_OperationDescription* description = begin();
    const int64_t ints[] = {1, -2, INT64_MAX, INT64_MIN};
    const float floats[] = {0.5f, -1e30f, 0.0f};
    const unsigned char bools[] = {1, 0, 2};
    TF_SetAttrInt(description, "_i", -42);
    TF_SetAttrIntList(description, "_is", ints, 4);
    TF_SetAttrFloat(description, "_f", 1.25f);
    TF_SetAttrFloatList(description, "_fs", floats, 3);
    TF_SetAttrBool(description, "_b", 1);
    TF_SetAttrBool(description, "_b0", 0);
    TF_SetAttrBoolList(description, "_bs", bools, 3);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    static const char* const NAMES[] = {"_i", "_is", "_f", "_fs", "_b", "_b0", "_bs"};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) print_attr(operation, NAMES[i]);
    int64_t i = 0, is[4] = {0};
    float f = 0, fs[3] = {0};
    unsigned char b = 9, bs[3] = {9, 9, 9};
    TF_OperationGetAttrInt(operation, "_i", &i, fresh(status));
    print_status("int", status);
    TF_OperationGetAttrIntList(operation, "_is", is, 4, fresh(status));
    print_status("ints", status);
    TF_OperationGetAttrFloat(operation, "_f", &f, fresh(status));
    print_status("float", status);
    TF_OperationGetAttrFloatList(operation, "_fs", fs, 3, fresh(status));
    print_status("floats", status);
    TF_OperationGetAttrBool(operation, "_b", &b, fresh(status));
    print_status("bool", status);
    TF_OperationGetAttrBoolList(operation, "_bs", bs, 3, fresh(status));
    print_status("bools", status);
    printf("%lld; %lld %lld %lld %lld; %g; %g %g %g; %d; %d %d %d\n", (long long)i, (long long)is[0], (long long)is[1],
           (long long)is[2], (long long)is[3], f, fs[0], fs[1], fs[2], b, bs[0], bs[1], bs[2]);
    memset(is, 0, sizeof is);
    TF_OperationGetAttrIntList(operation, "_is", is, 2, fresh(status));
    print_status("two of four", status);
    printf("%lld %lld %lld\n", (long long)is[0], (long long)is[1], (long long)is[2]);
}

static void empty_lists(void) {
    TF_OperationDescription* description = begin();
    TF_SetAttrStringList(description, "_strings", NULL, NULL, 0);
    TF_SetAttrIntList(description, "_ints", NULL, 0);
    TF_SetAttrTypeList(description, "_types", NULL, 0);
    TF_SetAttrShapeList(description, "_shapes", NULL, NULL, 0);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    static const char* const NAMES[] = {"_strings", "_ints", "_types", "_shapes"};
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) print_attr(operation, NAMES[i]);
}

static void types(void) {
    TF_OperationDescription* description = begin();
    const TF_DataType list[] = {TF_FLOAT, TF_STRING, TF_RESOURCE};
    TF_SetAttrType(description, "_t", TF_BFLOAT16);
    TF_SetAttrTypeList(description, "_ts", list, 3);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    print_attr(operation, "_t");
    print_attr(operation, "_ts");
    TF_DataType type = 0, found[3] = {0};
    TF_OperationGetAttrType(operation, "_t", &type, fresh(status));
    print_status("type", status);
    TF_OperationGetAttrTypeList(operation, "_ts", found, 3, fresh(status));
    print_status("types", status);
    printf("%d; %d %d %d\n", (int)type, (int)found[0], (int)found[1], (int)found[2]);
}

static void shapes(void) {
    TF_OperationDescription* description = begin();
    const int64_t a[] = {2, -1, 3}, b[] = {7};
    const int64_t* dims[] = {a, NULL, b, NULL};
    const int ranks[] = {3, -1, 1, 0};
    TF_SetAttrShape(description, "_s", a, 3);
    TF_SetAttrShape(description, "_unknown", NULL, -1);
    TF_SetAttrShape(description, "_scalar", NULL, 0);
    TF_SetAttrShapeList(description, "_list", dims, ranks, 4);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    print_attr(operation, "_s");
    print_attr(operation, "_unknown");
    print_attr(operation, "_scalar");
    print_attr(operation, "_list");
    int64_t found[4] = {9, 9, 9, 9};
    TF_OperationGetAttrShape(operation, "_s", found, 3, fresh(status));
    print_status("shape", status);
    printf("%lld %lld %lld\n", (long long)found[0], (long long)found[1], (long long)found[2]);
    TF_OperationGetAttrShape(operation, "_s", found, 1, fresh(status));
    print_status("one of three", status);
    TF_OperationGetAttrShape(operation, "_unknown", found, 4, fresh(status));
    print_status("unknown", status);
    int64_t* lists[4];
    int list_ranks[4];
    int64_t storage[8];
    TF_OperationGetAttrShapeList(operation, "_list", lists, list_ranks, 4, storage, 8, fresh(status));
    print_status("list", status);
    for (int i = 0; i < 4; ++i) {
        printf("  rank %d:", list_ranks[i]);
        for (int k = 0; k < list_ranks[i]; ++k) printf(" %lld", (long long)lists[i][k]);
        printf("\n");
    }
    TF_OperationGetAttrShapeList(operation, "_list", lists, list_ranks, 4, storage, 2, fresh(status));
    print_status("little storage", status);
}

static void shape_protos(void) {
    Message dim = {0}, shape = {0};
    message_int(&dim, 1, 5);
    message_part(&shape, 2, &dim);
    TF_OperationDescription* description = begin();
    TF_SetAttrTensorShapeProto(description, "_s", shape.data, shape.length, fresh(status));
    print_status("set", status);
    TF_SetAttrTensorShapeProto(description, "_bad", "\xff\xff", 2, fresh(status));
    print_status("set garbage", status);
    const void* protos[] = {shape.data, shape.data};
    const size_t lengths[] = {shape.length, 0};
    TF_SetAttrTensorShapeProtoList(description, "_list", protos, lengths, 2, fresh(status));
    print_status("set list", status);
    const void* bad[] = {shape.data, "\xff\xff"};
    const size_t bad_lengths[] = {shape.length, 2};
    TF_SetAttrTensorShapeProtoList(description, "_bad_list", bad, bad_lengths, 2, fresh(status));
    print_status("set list with garbage", status);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    print_attr(operation, "_s");
    print_attr(operation, "_list");
    TF_Buffer* buffer = TF_NewBuffer();
    TF_OperationGetAttrTensorShapeProto(operation, "_s", buffer, fresh(status));
    print_status("get", status);
    print_bytes(buffer->data, buffer->length);
    TF_DeleteBuffer(buffer);
    TF_Buffer* buffers[2] = {NULL, NULL};
    TF_OperationGetAttrTensorShapeProtoList(operation, "_list", buffers, 2, fresh(status));
    print_status("\nget list", status);
    for (int i = 0; i < 2; ++i) {
        print_bytes(buffers[i]->data, buffers[i]->length);
        printf("\n");
        TF_DeleteBuffer(buffers[i]);
    }
    message_free(&shape);
}

static void tensors(void) {
    const float values[] = {1, 2, 3};
    TF_Tensor* list[] = {float_vector(3, values), int_scalar(4), string_scalar("five")};
    TF_OperationDescription* description = begin();
    TF_SetAttrTensor(description, "_t", list[0], fresh(status));
    print_status("set", status);
    TF_SetAttrTensorList(description, "_ts", list, 3, fresh(status));
    print_status("set list", status);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    for (int i = 0; i < 3; ++i) TF_DeleteTensor(list[i]);
    print_attr(operation, "_t");
    print_attr(operation, "_ts");
    TF_Tensor* tensor = NULL;
    TF_OperationGetAttrTensor(operation, "_t", &tensor, fresh(status));
    print_status("get", status);
    print_tensor("tensor", tensor);
    TF_DeleteTensor(tensor);
    TF_Tensor* found[3] = {NULL, NULL, NULL};
    TF_OperationGetAttrTensorList(operation, "_ts", found, 3, fresh(status));
    print_status("get list", status);
    for (int i = 0; i < 3; ++i) {
        print_tensor("tensor", found[i]);
        TF_DeleteTensor(found[i]);
    }
}

static void functions_and_placeholders(void) {
    TF_OperationDescription* description = begin();
    TF_SetAttrFuncName(description, "_f", "some_function", 13);
    TF_SetAttrPlaceholder(description, "_p", "T");
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    if (!operation) return;
    print_attr(operation, "_f");
    print_attr(operation, "_p");
}

static void value_protos(void) {
    Message value = {0};
    message_int(&value, 3, 77);
    TF_OperationDescription* description = begin();
    TF_SetAttrValueProto(description, "_i", value.data, value.length, fresh(status));
    print_status("set", status);
    TF_SetAttrValueProto(description, "_bad", "\xff\xff", 2, fresh(status));
    print_status("set garbage", status);
    TF_SetAttrValueProto(description, "_empty", "", 0, fresh(status));
    print_status("set empty", status);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    if (operation) {
        print_attr(operation, "_i");
        print_attr(operation, "_empty");
    }
    message_free(&value);
}

static void overwritten(void) {
    TF_OperationDescription* description = begin();
    TF_SetAttrInt(description, "_i", 1);
    TF_SetAttrInt(description, "_i", 2);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    if (operation) print_attr(operation, "_i");
}

static void wrong_getters(void) {
    TF_OperationDescription* description = begin();
    const int64_t ints[] = {1, 2};
    TF_SetAttrInt(description, "_i", 1);
    TF_SetAttrIntList(description, "_is", ints, 2);
    TF_SetAttrString(description, "_s", "x", 1);
    TF_Operation* operation = finish_and_print(description, "operation").oper;
    int64_t i = 5, is[2];
    float f;
    unsigned char b;
    TF_DataType type;
    char text[4];
    TF_Tensor* tensor = NULL;
    TF_Buffer* buffer = TF_NewBuffer();
    TF_OperationGetAttrInt(operation, "_missing", &i, fresh(status));
    print_status("missing", status);
    TF_OperationGetAttrInt(operation, "_is", &i, fresh(status));
    print_status("int from list", status);
    TF_OperationGetAttrIntList(operation, "_i", is, 2, fresh(status));
    print_status("list from int", status);
    TF_OperationGetAttrFloat(operation, "_i", &f, fresh(status));
    print_status("float from int", status);
    TF_OperationGetAttrBool(operation, "_i", &b, fresh(status));
    print_status("bool from int", status);
    TF_OperationGetAttrType(operation, "_i", &type, fresh(status));
    print_status("type from int", status);
    TF_OperationGetAttrString(operation, "_i", text, 4, fresh(status));
    print_status("string from int", status);
    TF_OperationGetAttrShape(operation, "_s", is, 2, fresh(status));
    print_status("shape from string", status);
    TF_OperationGetAttrTensor(operation, "_s", &tensor, fresh(status));
    print_status("tensor from string", status);
    print_tensor("tensor", tensor);
    TF_OperationGetAttrTensorShapeProto(operation, "_s", buffer, fresh(status));
    print_status("shape message from string", status);
    TF_OperationGetAttrValueProto(operation, "_missing", buffer, fresh(status));
    print_status("message of a missing one", status);
    TF_OperationGetAttrMetadata(operation, "_missing", fresh(status));
    print_status("metadata of a missing one", status);
    TF_DeleteBuffer(buffer);
}

static void defaults(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_Output product = binary(graph, "MatMul", "matmul", x, x);
    unsigned char transposed = 9;
    TF_OperationGetAttrBool(product.oper, "transpose_a", &transposed, fresh(status));
    print_status("transpose_a", status);
    printf("%d\n", transposed);
    print_attr(product.oper, "T");
    print_attr(x.oper, "shape");
}

static void in_new_graph(void (*body)(void)) {
    graph = TF_NewGraph();
    status = TF_NewStatus();
    body();
    TF_DeleteStatus(status);
    TF_DeleteGraph(graph);
}

#define IN_NEW_GRAPH(body) \
    static void run_##body(void) { in_new_graph(body); }

IN_NEW_GRAPH(strings)
IN_NEW_GRAPH(numbers)
IN_NEW_GRAPH(empty_lists)
IN_NEW_GRAPH(types)
IN_NEW_GRAPH(shapes)
IN_NEW_GRAPH(shape_protos)
IN_NEW_GRAPH(tensors)
IN_NEW_GRAPH(functions_and_placeholders)
IN_NEW_GRAPH(value_protos)
IN_NEW_GRAPH(overwritten)
IN_NEW_GRAPH(wrong_getters)
IN_NEW_GRAPH(defaults)

static const Case CASES[] = {
    {"strings", run_strings},
    {"numbers", run_numbers},
    {"empty_lists", run_empty_lists},
    {"types", run_types},
    {"shapes", run_shapes},
    {"shape_protos", run_shape_protos},
    {"tensors", run_tensors},
    {"functions_and_placeholders", run_functions_and_placeholders},
    {"value_protos", run_value_protos},
    {"overwritten", run_overwritten},
    {"wrong_getters", run_wrong_getters},
    {"defaults", run_defaults},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
