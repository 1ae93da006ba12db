/* TF_TString: the three layouts, and string tensors through a graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"

static void describe(const char* what, const TF_TString* string) {
    printf("%s: type %d, size %zu, capacity at least size %d, '", what, (int)TF_StringGetType(string),
           TF_StringGetSize(string), TF_StringGetCapacity(string) >= TF_StringGetSize(string));
    print_bytes(TF_StringGetDataPointer(string), TF_StringGetSize(string));
    printf("'\n");
}

static void layout(void) {
    printf("size %zu\n", sizeof(TF_TString));
    TF_TString string;
    TF_StringInit(&string);
    describe("fresh", &string);
    printf("capacity %zu\n", TF_StringGetCapacity(&string));
    const unsigned char* bytes = (const unsigned char*)&string;
    printf("first byte %02x\n", bytes[0]);
    TF_StringCopy(&string, "abc", 3);
    printf("small bytes %02x %02x %02x %02x %02x\n", bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]);
    TF_StringDealloc(&string);
    describe("after dealloc", &string);
}

static void sizes(void) {
    static const size_t SIZES[] = {0, 1, 7, 21, 22, 23, 24, 63, 64, 65, 1000, 1000000};
    for (int i = 0; i < N_ELEMENTS(SIZES); ++i) {
        char* text = malloc(SIZES[i] + 1);
        for (size_t k = 0; k < SIZES[i]; ++k) text[k] = (char)(k * 7);
        TF_TString string;
        TF_StringInit(&string);
        TF_StringCopy(&string, text, SIZES[i]);
        printf("%zu: type %d, size %zu, same content %d, ends with zero %d, capacity %zu, low bits %d\n", SIZES[i],
               (int)TF_StringGetType(&string), TF_StringGetSize(&string),
               memcmp(TF_StringGetDataPointer(&string), text, SIZES[i]) == 0,
               TF_StringGetDataPointer(&string)[SIZES[i]] == '\0', TF_StringGetCapacity(&string),
               *(unsigned char*)&string & 3);
        TF_StringDealloc(&string);
        free(text);
    }
}

static void overwrite(void) {
    TF_TString string;
    TF_StringInit(&string);
    TF_StringCopy(&string, "a string that does not fit inside", 33);
    describe("long", &string);
    TF_StringCopy(&string, "short", 5);
    describe("then short", &string);
    TF_StringCopy(&string, "", 0);
    describe("then empty", &string);
    TF_StringCopy(&string, "z\0ero", 5);
    describe("with a zero", &string);
    TF_StringDealloc(&string);
    TF_StringInit(&string);
    describe("again", &string);
    TF_StringDealloc(&string);
    TF_StringDealloc(&string);
    describe("deallocated twice", &string);
}

static void views(void) {
    static char text[] = "seen from outside, not owned";
    TF_TString string;
    TF_StringInit(&string);
    TF_StringAssignView(&string, text, strlen(text));
    describe("view", &string);
    printf("same memory %d\n", TF_StringGetDataPointer(&string) == text);
    text[0] = 'S';
    describe("changed", &string);
    TF_StringAssignView(&string, text, 4);
    describe("shorter", &string);
    TF_StringCopy(&string, "own", 3);
    describe("owned", &string);
    TF_StringDealloc(&string);
}

static const char* const WORDS[] = {"", "exactly 22 bytes long.", "exactly 23 bytes long..", "zeros"};

static TF_Tensor* words(void) {
    TF_Tensor* tensor = string_vector(4, WORDS);
    TF_StringCopy((TF_TString*)TF_TensorData(tensor) + 3, "a\0b\0c", 5);
    return tensor;
}

static void tensor_of_strings(void) {
    TF_Tensor* tensor = words();
    print_tensor("words", tensor);
    for (int i = 0; i < 4; ++i) describe("element", (TF_TString*)TF_TensorData(tensor) + i);
    TF_DeleteTensor(tensor);
}

static void allocated_is_empty(void) {
    const int64_t dims[] = {3};
    TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, dims, 1, 3 * sizeof(TF_TString));
    print_tensor("allocated", tensor);
    TF_DeleteTensor(tensor);
}

static void through_identity(void) {
    TF_Graph* graph = TF_NewGraph();
    TF_Output input = placeholder(graph, "in", TF_STRING);
    TF_Output output = unary(graph, "Identity", "out", input);
    TF_Session* session = new_session(graph);
    run_and_print("identity", session, input, words(), output, NULL);
    run_and_print("length", session, input, words(), unary(graph, "StringLength", "length", input), NULL);
    TF_OperationDescription* description = TF_NewOperation(graph, "StringJoin", "join");
    const TF_Output twice[] = {input, input};
    TF_AddInputList(description, twice, 2);
    TF_SetAttrString(description, "separator", "-", 1);
    run_and_print("join", session, input, words(), finish(description), NULL);
    run_and_print("scalar", session, input, string_scalar("one"), output, NULL);
    delete_session(session);
    TF_DeleteGraph(graph);
}

static void as_constant(void) {
    TF_Graph* graph = TF_NewGraph();
    TF_Output output = constant(graph, "c", words());
    TF_Status* status = TF_NewStatus();
    TF_Tensor* value = NULL;
    TF_OperationGetAttrTensor(output.oper, "value", &value, status);
    print_status("get", status);
    print_tensor("value", value);
    TF_DeleteTensor(value);
    TF_Session* session = new_session(graph);
    run_and_print("run", session, NOTHING, NULL, output, NULL);
    delete_session(session);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
}

static void foreign_strings_into_run(void) {
    static TF_TString elements[2];
    static const char text[] = "a view of text that lives elsewhere";
    TF_StringInit(&elements[0]);
    TF_StringAssignView(&elements[0], text, strlen(text));
    TF_StringInit(&elements[1]);
    TF_StringCopy(&elements[1], "copied, and long enough to be on the heap", 41);
    TF_Graph* graph = TF_NewGraph();
    TF_Output input = placeholder(graph, "in", TF_STRING);
    TF_Output output = unary(graph, "Identity", "out", input);
    TF_Session* session = new_session(graph);
    const int64_t dims[] = {2};
    TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, dims, 1, sizeof elements);
    memcpy(TF_TensorData(tensor), elements, sizeof elements);
    run_and_print("views", session, input, tensor, output, NULL);
    delete_session(session);
    TF_DeleteGraph(graph);
}

static const Case CASES[] = {
    {"layout", layout},
    {"sizes", sizes},
    {"overwrite", overwrite},
    {"views", views},
    {"tensor_of_strings", tensor_of_strings},
    {"allocated_is_empty", allocated_is_empty},
    {"through_identity", through_identity},
    {"as_constant", as_constant},
    {"foreign_strings_into_run", foreign_strings_into_run},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
