/* Functions that change operations after they were added, and what handles hold. */
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"
#include "harness/print_graph.h"

static void controls(void) {
    TF_Operation *a = no_op(graph, "a"), *b = no_op(graph, "b"), *c = no_op(graph, "c");
    TF_AddOperationControlInput(graph, c, a);
    TF_AddOperationControlInput(graph, c, b);
    TF_AddOperationControlInput(graph, c, a);
    printf("%d, %d of a\n", TF_OperationNumControlInputs(c), TF_OperationNumControlOutputs(a));
    print_graph(graph);
    TF_RemoveAllControlInputs(graph, c);
    printf("%d, %d of a\n", TF_OperationNumControlInputs(c), TF_OperationNumControlOutputs(a));
    print_graph(graph);
    run_and_print("run", session, NOTHING, NULL, NOTHING, c);
}

static void set_attr(const char* what, TF_Operation* operation, const char* name, const void* bytes, size_t length) {
    TF_Buffer* buffer = TF_NewBufferFromString(bytes, length);
    TF_SetAttr(graph, operation, name, buffer, fresh(status));
    print_status(what, status);
    TF_DeleteBuffer(buffer);
}

static void attributes(void) {
    TF_Output x = float_constant(graph, "x", 3), y = unary(graph, "Neg", "y", x);
    set_attr("int", y.oper, "_i", "\x18\x2a", 2);
    set_attr("again", y.oper, "_i", "\x18\x2b", 2);
    set_attr("text", y.oper, "_s", "\x12\x03yes", 5);
    set_attr("garbage", y.oper, "_g", "\xff\xff", 2);
    print_graph(graph);
    TF_ClearAttr(graph, y.oper, "_i", fresh(status));
    print_status("clear", status);
    TF_ClearAttr(graph, y.oper, "_i", fresh(status));
    print_status("clear again", status);
    TF_ClearAttr(graph, y.oper, "none", fresh(status));
    print_status("clear none", status);
    print_graph(graph);
    fetch("y", y);
}

static void devices(void) {
    TF_Output x = float_constant(graph, "x", 3), y = unary(graph, "Neg", "y", x);
    TF_SetRequestedDevice(graph, y.oper, "/device:CPU:0");
    printf("%s\n", TF_OperationDevice(y.oper));
    fetch("y", y);
    TF_SetRequestedDevice(graph, x.oper, "");
    printf("'%s'\n", TF_OperationDevice(x.oper));
    print_graph(graph);
}

static void edges(void) {
    TF_Output x = float_constant(graph, "x", 3), z = float_constant(graph, "z", 5), y = unary(graph, "Neg", "y", x);
    TF_Output sum = binary(graph, "AddV2", "sum", y, x), beyond = {x.oper, 1};
    TF_Input of_y = {y.oper, 0}, second = {sum.oper, 1}, none = {y.oper, 3};
    TF_UpdateEdge(graph, z, of_y, fresh(status));
    print_status("update", status);
    fetch("sum", sum);
    TF_UpdateEdge(graph, y, second, fresh(status));
    print_status("second", status);
    print_graph(graph);
    TF_UpdateEdge(graph, beyond, of_y, fresh(status));
    print_status("no such output", status);
    TF_UpdateEdge(graph, z, none, fresh(status));
    print_status("no such input", status);
    print_graph(graph);
    TF_Session* other = new_session(graph);
    run_and_print("in a new session", other, NOTHING, NULL, sum, NULL);
    delete_session(other);
}

static void edge_of_another_type(void) {
    TF_Output x = float_constant(graph, "x", 3), y = unary(graph, "Neg", "y", x), i = int_constant(graph, "i", 1);
    TF_Input of_y = {y.oper, 0};
    TF_UpdateEdge(graph, i, of_y, fresh(status));
    print_status("another type", status);
    fetch("y", y);
}

static void locked(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "NoOp", "plain");
    TF_Operation* operation = TF_FinishOperation(description, fresh(status));
    print_status("plain", status);
    printf("%d\n", operation != NULL);
}

static void extending(void) {
    TF_Output x = float_constant(graph, "x", 3);
    TF_ExtendSession(session, fresh(status));
    print_status("extend", status);
    TF_ExtendSession(session, fresh(status));
    print_status("again", status);
    fetch("x", x);
    TF_Output y = unary(graph, "Neg", "y", x);
    TF_ExtendSession(session, fresh(status));
    print_status("more", status);
    fetch("y", y);
}

static void print_handle(const char* what, TF_Output output) {
    TF_Buffer* buffer = TF_GetHandleShapeAndType(graph, output);
    printf("%s: ", what);
    if (buffer) print_bytes(buffer->data, buffer->length);
    printf("%s\n", buffer ? "" : "NULL");
    TF_DeleteBuffer(buffer);
}

static void handles(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "VarHandleOp", "v");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrShape(description, "shape", (const int64_t[]){2, -1}, 2);
    TF_Output variable = finish(description), x = float_constant(graph, "x", 3);
    print_handle("variable", variable);
    print_handle("a constant", x);
    TF_Output handle = placeholder(graph, "handle", TF_RESOURCE);
    print_handle("placeholder", handle);
    TF_Buffer* known = TF_GetHandleShapeAndType(graph, variable);
    TF_SetHandleShapeAndType(graph, handle, known->data, known->length, fresh(status));
    print_status("set", status);
    print_handle("placeholder", handle);
    TF_SetHandleShapeAndType(graph, handle, "\xff\xff", 2, fresh(status));
    print_status("garbage", status);
    TF_DeleteBuffer(known);
    description = TF_NewOperation(graph, "ReadVariableOp", "read");
    TF_AddInput(description, handle);
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_Output read = finish(description);
    int64_t dims[2] = {0};
    printf("rank %d:", TF_GraphGetTensorNumDims(graph, read, fresh(status)));
    TF_GraphGetTensorShape(graph, read, dims, 2, fresh(status));
    printf(" %lld %lld\n", (long long)dims[0], (long long)dims[1]);
}

static void set_full_type(TF_Operation* operation, const void* bytes, size_t length) {
    TF_Buffer* buffer = TF_NewBufferFromString(bytes, length);
    TF_SetFullType(graph, operation, buffer);
    TF_DeleteBuffer(buffer);
}

/* A product of a tensor of floats; then of an integer. */
static void full_types(void) {
    TF_Output x = float_constant(graph, "x", 3), y = unary(graph, "Neg", "y", x);
    set_full_type(y.oper, "\x08\x03\x12\x08\x08\xe8\x07\x12\x03\x08\xc8\x01", 12);
    print_graph(graph);
    set_full_type(y.oper, "\x08\x03\x12\x03\x08\xcc\x01", 7);
    print_graph(graph);
    set_full_type(y.oper, "\xff\xff", 2);
    print_graph(graph);
    fetch("y", y);
    TF_Buffer* def = exported(graph);
    TF_Graph* copy = TF_NewGraph();
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(copy, def, options, fresh(status));
    print_status("import", status);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(def);
    print_graph(copy);
    TF_Output parameters[] = {y};
    TF_Function* function = TF_GraphToFunction(graph, "typed", 0, -1, NULL, 0, NULL, 1, parameters, NULL, NULL, NULL, fresh(status));
    print_status("function", status);
    TF_DeleteFunction(function);
    set_full_type(y.oper, "", 0);
    print_graph(graph);
    TF_DeleteGraph(copy);
}

/* Ops whose outputs have a type by their definitions. */
static void full_types_of_ops(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "TensorListReserve", "list");
    TF_AddInput(description, int_constant(graph, "shape", -1));
    TF_AddInput(description, int_constant(graph, "count", 3));
    TF_SetAttrType(description, "element_dtype", TF_FLOAT);
    TF_Output list = finish(description);
    unary(graph, "Identity", "same", list);
    TF_OperationDescription* shape = TF_NewOperation(graph, "Shape", "extents");
    TF_AddInput(shape, float_constant(graph, "x", 3));
    finish(shape);
    TF_Output element = float_constant(graph, "element", 1);
    description = TF_NewOperation(graph, "TensorListPushBack", "longer");
    TF_AddInput(description, list);
    TF_AddInput(description, element);
    finish(description);
    description = TF_NewOperation(graph, "OptionalFromValue", "optional");
    TF_AddInputList(description, &element, 1);
    finish(description);
    print_graph(graph);
}

IN_NEW_SESSION(controls)
IN_NEW_SESSION(attributes)
IN_NEW_SESSION(devices)
IN_NEW_SESSION(edges)
IN_NEW_SESSION(edge_of_another_type)
IN_NEW_SESSION(locked)
IN_NEW_SESSION(extending)
IN_NEW_SESSION(handles)
IN_NEW_SESSION(full_types)
IN_NEW_SESSION(full_types_of_ops)

static const Case CASES[] = {
    CASE(controls), CASE(attributes), CASE(devices), CASE(edges), CASE(edge_of_another_type),
    CASE(locked),   CASE(extending),  CASE(handles), CASE(full_types), CASE(full_types_of_ops),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
