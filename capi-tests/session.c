/* TF_SessionRun: feeds, fetches, targets and every way to get them wrong; options, devices, lifetimes. */
#include <stdio.h>
#include <string.h>

#include "harness/build.h"
#include "harness/harness.h"
#include "harness/in_session.h"

static void feeds_and_fetches(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), two = float_constant(graph, "two", 2);
    TF_Output sum = binary(graph, "AddV2", "sum", x, two), negated = unary(graph, "Neg", "negated", sum);
    TF_Tensor* five = float_scalar(5);
    const TF_Output fetches[] = {negated, sum, two, sum};
    run("four", 1, &x, &five, 4, fetches, 0, NULL);
    run("intermediate fed", 1, &sum, &five, 1, &negated, 0, NULL);
    run("constant fed", 1, &two, &five, 1, &two, 0, NULL);
    const TF_Output twice[] = {x, x};
    TF_Tensor* const fives[] = {five, five};
    run("fed twice", 2, twice, fives, 1, &sum, 0, NULL);
    run("nothing asked", 1, &x, &five, 0, NULL, 0, NULL);
    run("nothing at all", 0, NULL, NULL, 0, NULL, 0, NULL);
    TF_DeleteTensor(five);
}

static void fed_and_fetched(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_Tensor* five = float_scalar(5);
    run("x", 1, &x, &five, 1, &x, 0, NULL);
    TF_DeleteTensor(five);
}

/* A placeholder that others only wait for counts as fed, too; as a target it does not. */
static void fed_and_waited_for(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), y = placeholder(graph, "y", TF_FLOAT);
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "negated");
    TF_AddInput(description, y);
    TF_AddControlInput(description, x.oper);
    TF_Output negated = finish(description), both[] = {x, y};
    TF_Tensor* feeds[] = {float_scalar(5), float_scalar(6)};
    const TF_Operation* targets[] = {x.oper};
    run("both are fed", 2, both, feeds, 1, &negated, 0, NULL);
    run("the target is fed", 2, both, feeds, 1, &negated, 1, targets);
    run("only the value is fed", 1, &both[1], &feeds[1], 1, &negated, 0, NULL);
    run("only a target", 1, both, feeds, 0, NULL, 1, targets);
    TF_DeleteTensor(feeds[0]);
    TF_DeleteTensor(feeds[1]);
}

static void not_fed(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), negated = unary(graph, "Neg", "negated", x);
    fetch("unknown shape", negated);
    const int64_t dims[] = {2, -1};
    TF_Output y = shaped_placeholder(graph, "y", TF_INT64, 2, dims);
    fetch("with a shape", unary(graph, "Neg", "negated_y", y));
    TF_OperationDescription* description = TF_NewOperation(graph, "PlaceholderWithDefault", "d");
    TF_AddInput(description, float_constant(graph, "three", 3));
    TF_SetAttrShape(description, "shape", NULL, 0);
    TF_Output with_default = finish(description);
    fetch("with a default", with_default);
    run_and_print("default overridden", session, with_default, float_scalar(4), with_default, NULL);
    run_and_print("default overridden", session, with_default, float_scalar(4),
                  unary(graph, "Neg", "negated_d", with_default), NULL);
}

static void wrong_feeds(void) {
    const int64_t dims[] = {2, -1};
    TF_Output x = placeholder(graph, "x", TF_FLOAT), negated = unary(graph, "Neg", "negated", x);
    TF_Output y = shaped_placeholder(graph, "y", TF_FLOAT, 2, dims), negated_y = unary(graph, "Neg", "negated_y", y);
    run_and_print("int32 for float", session, x, int_scalar(1), negated, NULL);
    run_and_print("scalar for a matrix", session, y, float_scalar(1), negated_y, NULL);
    const int64_t three[] = {3, 1};
    const float values[] = {1, 2, 3};
    run_and_print("3 rows for 2", session, y, tensor_of(TF_FLOAT, 2, three, values), negated_y, NULL);
    TF_Output beyond = {x.oper, 1};
    run_and_print("feed of output 1", session, beyond, float_scalar(1), negated, NULL);
    run_and_print("still usable", session, x, float_scalar(1), negated, NULL);
}

static void wrong_fetches(void) {
    TF_Operation* n = no_op(graph, "n");
    TF_Output of_noop = {n, 0}, x = float_constant(graph, "x", 1), beyond = {x.oper, 1}, negative = {x.oper, -1};
    fetch("output 0 of a NoOp", of_noop);
    fetch("output 1 of a constant", beyond);
    fetch("output -1", negative);
    fetch("still usable", x);
}

static void other_graph(void) {
    TF_Graph* other = TF_NewGraph();
    TF_Output foreign = float_constant(other, "far", 1);
    float_constant(graph, "x", 1);
    fetch("fetch of another graph", foreign);
    TF_DeleteGraph(other);
}

static void targets(void) {
    TF_Operation* n = no_op(graph, "n");
    TF_Output x = placeholder(graph, "x", TF_FLOAT), negated = unary(graph, "Neg", "negated", x);
    const TF_Operation* const both[] = {n, n};
    const TF_Operation* const needs_feed[] = {negated.oper};
    run("NoOp", 0, NULL, NULL, 0, NULL, 1, both);
    run("NoOp twice", 0, NULL, NULL, 0, NULL, 2, both);
    run("target that needs a feed", 0, NULL, NULL, 0, NULL, 1, needs_feed);
    run_and_print("fetch and target", session, x, float_scalar(3), negated, n);
}

static void metadata_and_options(void) {
    TF_Output x = float_constant(graph, "x", 1);
    TF_Tensor* result = NULL;
    TF_Buffer* full = TF_NewBufferFromString("full", 4);
    TF_SessionRun(session, NULL, NULL, NULL, 0, &x, &result, 1, NULL, 0, full, fresh(status));
    print_status("metadata not empty", status);
    TF_DeleteBuffer(full);
    TF_Buffer* garbage = TF_NewBufferFromString("\xff\xff\xff", 3);
    TF_SessionRun(session, garbage, NULL, NULL, 0, &x, &result, 1, NULL, 0, NULL, fresh(status));
    print_status("garbage as options", status);
    TF_DeleteBuffer(garbage);
    TF_Buffer* metadata = TF_NewBuffer();
    TF_Buffer* trace = TF_NewBufferFromString("\x08\x03", 2); /* trace_level: FULL_TRACE */
    TF_SessionRun(session, trace, NULL, NULL, 0, &x, &result, 1, NULL, 0, metadata, fresh(status));
    print_status("trace", status);
    printf("metadata: %d\n", metadata->length > 0);
    TF_DeleteTensor(result);
    TF_DeleteBuffer(trace);
    TF_DeleteBuffer(metadata);
    TF_Buffer* none = TF_NewBufferFromString("", 0);
    TF_SessionRun(session, none, NULL, NULL, 0, &x, &result, 1, NULL, 0, NULL, fresh(status));
    print_status("empty options", status);
    TF_DeleteTensor(result);
    TF_DeleteBuffer(none);
}

static void configurations(void) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, "\xff\xff\xff", 3, fresh(status));
    print_status("garbage", status);
    TF_SetConfig(options, "", 0, fresh(status));
    print_status("empty", status);
    const char threads[] = {0x10, 1, 0x28, 1}; /* intra_op and inter_op_parallelism_threads: 1 */
    TF_SetConfig(options, threads, sizeof threads, fresh(status));
    print_status("one thread", status);
    TF_Session* own = TF_NewSession(graph, options, fresh(status));
    print_status("session", status);
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    run_and_print("run", own, x, float_scalar(3), unary(graph, "Neg", "negated", x), NULL);
    delete_session(own);
    TF_DeleteSessionOptions(options);
}

static void devices(void) {
    TF_DeviceList* list = TF_SessionListDevices(session, fresh(status));
    print_status("list", status);
    int count = TF_DeviceListCount(list);
    printf("%d devices\n", count);
    for (int i = 0; i < count; ++i) {
        printf("%s %s", TF_DeviceListName(list, i, fresh(status)), TF_DeviceListType(list, i, fresh(status)));
        printf(" %lld bytes\n", (long long)TF_DeviceListMemoryBytes(list, i, fresh(status)));
    }
    printf("%s\n", TF_DeviceListName(list, count, fresh(status)) ? "a name" : "NULL");
    print_status("beyond", status);
    printf("%lld\n", (long long)TF_DeviceListMemoryBytes(list, -1, fresh(status)));
    print_status("before", status);
    TF_DeleteDeviceList(list);
}

static void closing(void) {
    TF_Output x = float_constant(graph, "x", 1);
    fetch("open", x);
    TF_CloseSession(session, fresh(status));
    print_status("close", status);
    fetch("closed", x);
    TF_CloseSession(session, fresh(status));
    print_status("close again", status);
}

static void growing(void) {
    TF_Output x = float_constant(graph, "x", 1);
    fetch("x", x);
    TF_Output y = unary(graph, "Neg", "y", x);
    fetch("y", y);
    fetch("x", x);
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "broken");
    finish_and_print(description, "broken");
    fetch("after a failed operation", binary(graph, "AddV2", "z", y, y));
}

static void graph_deleted_first(void) {
    TF_Graph* own = TF_NewGraph();
    TF_Output x = placeholder(own, "x", TF_FLOAT), y = unary(own, "Neg", "y", x);
    TF_Session* last = new_session(own);
    TF_DeleteGraph(own);
    run_and_print("run", last, x, float_scalar(2), y, NULL);
    delete_session(last);
}

static void errors_in_kernels(void) {
    TF_Output index = placeholder(graph, "index", TF_INT32), zero = placeholder(graph, "zero", TF_INT32);
    const float values[] = {1, 2, 3};
    TF_OperationDescription* description = TF_NewOperation(graph, "GatherV2", "gather");
    TF_AddInput(description, constant(graph, "v", float_vector(3, values)));
    TF_AddInput(description, index);
    TF_AddInput(description, int_constant(graph, "axis", 0));
    TF_Output gather = finish(description);
    run_and_print("gather 1", session, index, int_scalar(1), gather, NULL);
    run_and_print("gather 3", session, index, int_scalar(3), gather, NULL);
    run_and_print("gather -1", session, index, int_scalar(-1), gather, NULL);
    TF_Output quotient = binary(graph, "FloorDiv", "quotient", int_constant(graph, "seven", 7), zero);
    run_and_print("7 / 2", session, zero, int_scalar(2), quotient, NULL);
    run_and_print("7 / 0", session, zero, int_scalar(0), quotient, NULL);
    TF_Output condition = placeholder(graph, "condition", TF_BOOL),
              text = constant(graph, "t", string_scalar("so what"));
    description = TF_NewOperation(graph, "Assert", "assert");
    TF_AddInput(description, condition);
    TF_AddInputList(description, &text, 1);
    TF_Output assertion = finish(description);
    const unsigned char no = 0;
    run_and_print("assert false", session, condition, tensor_of(TF_BOOL, 0, NULL, &no), NOTHING, assertion.oper);
    TF_Output a = placeholder(graph, "a", TF_FLOAT), square = binary(graph, "MatMul", "square", a, a);
    const int64_t dims[] = {2, 3};
    const float six[] = {1, 2, 3, 4, 5, 6};
    run_and_print("matmul 2x3 2x3", session, a, tensor_of(TF_FLOAT, 2, dims, six), square, NULL);
    run_and_print("matmul of scalars", session, a, float_scalar(1), square, NULL);
    TF_Output b = placeholder(graph, "b", TF_FLOAT);
    TF_Output sum = binary(graph, "AddV2", "sum", b, constant(graph, "two", float_vector(2, six)));
    run_and_print("3 + 2", session, b, float_vector(3, six), sum, NULL);
    run_and_print("still usable", session, b, float_scalar(1), sum, NULL);
}

static void shape_of_a_run_time_value(void) {
    TF_Output x = placeholder(graph, "x", TF_FLOAT), shape = placeholder(graph, "shape", TF_INT32);
    TF_Output reshaped = binary(graph, "Reshape", "reshaped", x, shape);
    static const int32_t SHAPES[][2] = {{2, 3}, {3, -1}, {4, 2}, {-1, -1}, {-2, 3}};
    const float six[] = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < N_ELEMENTS(SHAPES); ++i) {
        const TF_Output inputs[] = {x, shape};
        TF_Tensor* const feeds[] = {float_vector(6, six), int_vector(2, SHAPES[i])};
        run("reshape", 2, inputs, feeds, 1, &reshaped, 0, NULL);
        TF_DeleteTensor(feeds[0]);
        TF_DeleteTensor(feeds[1]);
    }
}

static void placed_on_gpu(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "on_gpu");
    TF_AddInput(description, float_constant(graph, "one", 1));
    TF_SetDevice(description, "/device:GPU:0");
    TF_Output negated = finish(description);
    fetch("hard placement", negated);
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, "\x38\x01", 2, fresh(status)); /* allow_soft_placement */
    TF_Session* soft = TF_NewSession(graph, options, fresh(status));
    run_and_print("soft placement", soft, NOTHING, NULL, negated, NULL);
    delete_session(soft);
    TF_DeleteSessionOptions(options);
}

static void wrong_device(void) {
    TF_OperationDescription* description = TF_NewOperation(graph, "Neg", "n");
    TF_AddInput(description, float_constant(graph, "one", 1));
    TF_SetDevice(description, "a nonsensical device");
    fetch("nonsense", finish(description));
}

/* Soft placement chooses another device of the same job, replica and task; there is none of another. */
static void placed_elsewhere(void) {
    static const char* const NAMES[] = {"/job:nowhere/device:CPU:0", "/replica:3/device:CPU:0", "/task:2/device:GPU:0",
                                        "/job:localhost/device:GPU:3", "/device:CPU:7"};
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetConfig(options, "\x38\x01", 2, fresh(status)); /* allow_soft_placement */
    TF_Output one = float_constant(graph, "one", 1);
    for (int i = 0; i < N_ELEMENTS(NAMES); ++i) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        TF_OperationDescription* description = TF_NewOperation(graph, "Neg", name);
        TF_AddInput(description, one);
        TF_SetDevice(description, NAMES[i]);
        TF_Output negated = finish(description);
        TF_Session* soft = TF_NewSession(graph, options, fresh(status));
        fetch(NAMES[i], negated);
        run_and_print("soft", soft, NOTHING, NULL, negated, NULL);
        delete_session(soft);
    }
    TF_DeleteSessionOptions(options);
}

static void conv_nchw(void) {
    const int64_t dims[] = {1, 1, 4, 4}, filter_dims[] = {1, 1, 1, 1};
    float values[16];
    for (int i = 0; i < 16; ++i) values[i] = (float)i;
    const float two = 2;
    TF_Output x = placeholder(graph, "x", TF_FLOAT);
    TF_OperationDescription* description = TF_NewOperation(graph, "Conv2D", "conv");
    TF_AddInput(description, x);
    TF_AddInput(description, constant(graph, "w", tensor_of(TF_FLOAT, 4, filter_dims, &two)));
    TF_SetAttrIntList(description, "strides", (const int64_t[]){1, 1, 1, 1}, 4);
    TF_SetAttrString(description, "padding", "SAME", 4);
    TF_SetAttrString(description, "data_format", "NCHW", 4);
    run_and_print("NCHW", session, x, tensor_of(TF_FLOAT, 4, dims, values), finish(description), NULL);
}

static void evaluate_constant(void) {
    TF_Output product = binary(graph, "Mul", "product", int_constant(graph, "six", 6), int_constant(graph, "seven", 7));
    TF_Tensor* result = NULL;
    printf("%d\n", TF_TryEvaluateConstant(graph, product, &result, fresh(status)));
    print_status("constant", status);
    print_tensor("constant", result);
    TF_DeleteTensor(result);
    result = NULL;
    TF_Output x = placeholder(graph, "x", TF_INT32);
    printf("%d\n", TF_TryEvaluateConstant(graph, binary(graph, "Mul", "p2", x, product), &result, fresh(status)));
    print_status("not constant", status);
    print_tensor("not constant", result);
}

static void unknown_target(void) {
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_SetTarget(options, "nonsense");
    TF_Session* none = TF_NewSession(graph, options, fresh(status));
    print_code("session", status); /* the text has a part in the middle that changes from run to run */
    printf("names it: %d\n", strstr(TF_Message(status), "target: \"nonsense\"") != NULL);
    printf("%s\n", none ? "a session" : "NULL");
    TF_DeleteSessionOptions(options);
}

static void large_graph_def(void) {
    enum { COUNT = 18 * 1024 * 1024 }; /* 72 MiB of floats */
    const int64_t dims[] = {COUNT}, zero = 0;
    TF_Tensor* large = TF_AllocateTensor(TF_FLOAT, dims, 1, COUNT * sizeof(float));
    float* values = TF_TensorData(large);
    for (int i = 0; i < COUNT; ++i) values[i] = (float)(i % 1000);
    TF_Graph* source = TF_NewGraph();
    TF_Output data = constant(source, "large", large);
    TF_OperationDescription* description = TF_NewOperation(source, "Max", "max");
    TF_AddInput(description, data);
    TF_AddInput(description, constant(source, "axis", tensor_of(TF_INT32, 0, NULL, &zero)));
    finish(description);
    TF_Buffer* buffer = exported(source);
    printf("over 64 MB: %d\n", buffer->length > 64u * 1024 * 1024);
    TF_DeleteGraph(source);
    TF_ImportGraphDefOptions* options = TF_NewImportGraphDefOptions();
    TF_GraphImportGraphDef(graph, buffer, options, fresh(status));
    print_status("import", status);
    TF_DeleteImportGraphDefOptions(options);
    TF_DeleteBuffer(buffer);
    TF_Output maximum = {TF_GraphOperationByName(graph, "max"), 0};
    fetch("max", maximum);
}

IN_NEW_SESSION(feeds_and_fetches)
IN_NEW_SESSION(fed_and_fetched)
IN_NEW_SESSION(fed_and_waited_for)
IN_NEW_SESSION(not_fed)
IN_NEW_SESSION(wrong_feeds)
IN_NEW_SESSION(wrong_fetches)
IN_NEW_SESSION(other_graph)
IN_NEW_SESSION(targets)
IN_NEW_SESSION(metadata_and_options)
IN_NEW_SESSION(configurations)
IN_NEW_SESSION(devices)
IN_NEW_SESSION(closing)
IN_NEW_SESSION(growing)
IN_NEW_SESSION(graph_deleted_first)
IN_NEW_SESSION(errors_in_kernels)
IN_NEW_SESSION(shape_of_a_run_time_value)
IN_NEW_SESSION(placed_on_gpu)
IN_NEW_SESSION(wrong_device)
IN_NEW_SESSION(placed_elsewhere)
IN_NEW_SESSION(conv_nchw)
IN_NEW_SESSION(evaluate_constant)
IN_NEW_SESSION(unknown_target)
IN_NEW_SESSION(large_graph_def)

static const Case CASES[] = {
    CASE(feeds_and_fetches),
    CASE(fed_and_fetched),
    CASE(fed_and_waited_for),
    CASE(not_fed),
    CASE(wrong_feeds),
    CASE(wrong_fetches),
    CASE(other_graph),
    CASE(targets),
    CASE(metadata_and_options),
    CASE(configurations),
    CASE(devices),
    CASE(closing),
    CASE(growing),
    CASE(graph_deleted_first),
    CASE(errors_in_kernels),
    CASE(shape_of_a_run_time_value),
    CASE(placed_on_gpu),
    CASE(wrong_device),
    CASE(placed_elsewhere),
    CASE(conv_nchw),
    CASE(evaluate_constant),
    CASE(unknown_target),
    CASE(large_graph_def),
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
