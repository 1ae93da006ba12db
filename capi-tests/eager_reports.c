/* What users of the C API have run into, in public reports (see reports.c), where the same can happen eagerly. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <tensorflow/c/eager/c_api_experimental.h>

#include "harness/build.h"
#include "harness/eager.h"
#include "harness/harness.h"

static TFE_TensorHandle* handle_of(TF_Tensor* tensor) {
    TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, fresh(status));
    if (TF_GetCode(status) != TF_OK) print_status("handle", status);
    TF_DeleteTensor(tensor);
    return handle;
}

static void drop(TFE_TensorHandle* handle) {
    if (handle) TFE_DeleteTensorHandle(handle);
}

/* tf#46803: strings of 0, 22, 23 bytes and with zeros. */
static void strings(void) {
    begin_eager(false);
    static const char* const TEXTS[] = {"", "22 characters are here", "23 characters are here.", "a\0b\0c"};
    static const size_t SIZES[] = {0, 22, 23, 5};
    const int64_t dims[] = {4};
    TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, dims, 1, 4 * sizeof(TF_TString));
    for (int i = 0; i < 4; ++i) {
        TF_TString* text = (TF_TString*)TF_TensorData(tensor) + i;
        TF_StringInit(text);
        TF_StringCopy(text, TEXTS[i], SIZES[i]);
    }
    printf("%zu bytes\n", TF_TensorByteSize(tensor));
    TFE_TensorHandle* x = handle_of(tensor);
    TFE_DeleteTensorHandle(execute("length", new_op("StringLength", x, NULL)));
    TFE_TensorHandle* same = execute_quietly("identity", new_op("Identity", x, NULL));
    tensor = TFE_TensorHandleResolve(same, fresh(status));
    for (int i = 0; i < 4; ++i) {
        const TF_TString* text = (const TF_TString*)TF_TensorData(tensor) + i;
        printf("%zu bytes, kind %d: ", TF_StringGetSize(text), (int)TF_StringGetType(text));
        print_bytes(TF_StringGetDataPointer(text), TF_StringGetSize(text));
        printf("\n");
    }
    TF_DeleteTensor(tensor);
    drop(same);
    drop(x);
    end_eager();
}

/* tf#60456 */
static void halves(void) {
    begin_eager(false);
    const float values[] = {6552.0f, 65504.0f, 65519.0f, 65520.0f, -65520.0f, 1.00390625f, 1.01171875f, 1.00390637f};
    TFE_TensorHandle* x = handle_of(float_vector(N_ELEMENTS(values), values));
    static const TF_DataType TYPES[] = {TF_HALF, TF_BFLOAT16};
    for (int i = 0; i < N_ELEMENTS(TYPES); ++i) {
        TFE_Op* op = new_op("Cast", x, NULL);
        TFE_OpSetAttrType(op, "DstT", TYPES[i]);
        TFE_TensorHandle* result = execute_quietly("cast", op);
        TF_Tensor* tensor = TFE_TensorHandleResolve(result, fresh(status));
        for (int k = 0; k < N_ELEMENTS(values); ++k) printf(" %04x", ((const uint16_t*)TF_TensorData(tensor))[k]);
        printf("\n");
        TF_DeleteTensor(tensor);
        drop(result);
    }
    drop(x);
    end_eager();
}

static TFE_TensorHandle* queue_of(const char* name, int rank, const int64_t* dims, int n_shapes) {
    const TF_DataType types[] = {TF_INT32};
    const int64_t* all[] = {dims};
    TFE_Op* op = new_op("FIFOQueueV2", NULL, NULL);
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    TFE_OpSetAttrShapeList(op, "shapes", all, &rank, n_shapes, fresh(status));
    TFE_OpSetAttrString(op, "shared_name", name, strlen(name));
    return execute_quietly(name, op);
}

static void through(const char* what, TFE_TensorHandle* queue, TF_Tensor* element) {
    TFE_TensorHandle* x = handle_of(element);
    TFE_Op* op = new_op("QueueEnqueueV2", queue, NULL);
    TFE_OpAddInputList(op, &x, 1, fresh(status));
    TFE_Execute(op, NULL, &(int){0}, fresh(status));
    print_status(what, status);
    bool entered = TF_GetCode(status) == TF_OK;
    TFE_DeleteOp(op);
    drop(x);
    if (!entered) return;
    const TF_DataType types[] = {TF_INT32};
    op = new_op("QueueDequeueV2", queue, NULL);
    TFE_OpSetAttrTypeList(op, "component_types", types, 1);
    drop(execute(what, op));
}

/* tf#14891 */
static void shapes_of_a_queue(void) {
    begin_eager(false);
    const int32_t values[] = {1, 2, 3, 4};
    const int64_t dims[] = {2, 2};
    TFE_TensorHandle* queues[] = {queue_of("scalars", 0, NULL, 1), queue_of("vectors", 1, dims, 1),
                                  queue_of("matrices", 2, dims, 1), queue_of("any", 0, NULL, 0)};
    through("a scalar", queues[0], int_scalar(7));
    through("a vector for a scalar", queues[0], int_vector(2, values));
    through("a vector", queues[1], int_vector(2, values));
    through("a longer one", queues[1], int_vector(3, values));
    through("a matrix", queues[2], tensor_of(TF_INT32, 2, dims, values));
    through("a scalar of any", queues[3], int_scalar(7));
    through("a vector of any", queues[3], int_vector(4, values));
    for (int i = 0; i < N_ELEMENTS(queues); ++i) drop(queues[i]);
    end_eager();
}

/* tf#18819, tf#46129: a table before and after its initializer. */
static void table(void) {
    begin_eager(false);
    TFE_Op* op = new_op("HashTableV2", NULL, NULL);
    TFE_OpSetAttrType(op, "key_dtype", TF_INT64);
    TFE_OpSetAttrType(op, "value_dtype", TF_INT64);
    TFE_OpSetAttrString(op, "shared_name", "t", 1);
    TFE_TensorHandle* handle = execute_quietly("table", op);
    const int64_t three[] = {3}, keys[] = {1, 2, 3}, values[] = {10, 20, 30}, none = -1;
    TFE_TensorHandle *k = handle_of(tensor_of(TF_INT64, 1, three, keys)), *v = handle_of(tensor_of(TF_INT64, 1, three, values)),
                     *missing = handle_of(tensor_of(TF_INT64, 0, NULL, &none));
    for (int filled = 0; filled < 2; ++filled) {
        if (filled) {
            op = new_op("LookupTableImportV2", handle, k);
            TFE_OpAddInput(op, v, status);
            execute("import", op);
            op = new_op("InitializeTableV2", handle, k);
            TFE_OpAddInput(op, v, status);
            execute("initialize", op);
        }
        op = new_op("LookupTableFindV2", handle, k);
        TFE_OpAddInput(op, missing, status);
        drop(execute("find", op));
    }
    drop(k);
    drop(v);
    drop(missing);
    drop(handle);
    end_eager();
}

/* tf#19348: the name of a checkpoint is its prefix, not one of its files. */
static void checkpoint_by_a_file_of_it(void) {
    begin_eager(false);
    const char* const names[] = {"v"};
    const char* const slices[] = {""};
    static const char* const PREFIXES[] = {"saved", "saved.index", "saved.data-00000-of-00001", "not_saved"};
    TFE_TensorHandle *name = handle_of(string_vector(1, names)), *slice = handle_of(string_vector(1, slices)), *value = number(5);
    for (int i = 0; i < N_ELEMENTS(PREFIXES); ++i) {
        TFE_TensorHandle* prefix = handle_of(string_scalar(PREFIXES[i]));
        if (i == 0) {
            TFE_Op* save = new_op("SaveV2", prefix, name);
            TFE_OpAddInput(save, slice, status);
            TFE_OpAddInputList(save, &value, 1, status);
            execute("save", save);
        }
        TFE_Op* op = new_op("RestoreV2", prefix, name);
        TFE_OpAddInput(op, slice, status);
        const TF_DataType types[] = {TF_FLOAT};
        TFE_OpSetAttrTypeList(op, "dtypes", types, 1);
        drop(execute(PREFIXES[i], op));
        drop(prefix);
    }
    drop(name);
    drop(slice);
    drop(value);
    end_eager();
}

/* tf#7967: channels first on a CPU. */
static void channels_first(void) {
    begin_eager(false);
    const int64_t dims[] = {1, 1, 4, 4}, filter_dims[] = {1, 1, 1, 1}, ones[] = {1, 1, 1, 1};
    TFE_TensorHandle *x = floats(4, dims), *w = floats(4, filter_dims);
    TFE_Op* op = new_op("Conv2D", x, w);
    TFE_OpSetAttrIntList(op, "strides", ones, 4);
    TFE_OpSetAttrString(op, "padding", "SAME", 4);
    TFE_OpSetAttrString(op, "data_format", "NCHW", 4);
    drop(execute("convolution", op));
    drop(x);
    drop(w);
    end_eager();
}

/* tf#61360: a device that is not there. */
static void device_that_is_not_there(void) {
    begin_eager(false);
    static const char* const NAMES[] = {"/device:GPU:0", "/device:CPU:7", "/job:nowhere/device:CPU:0"};
    TFE_TensorHandle* x = vector(2);
    for (int soft = 0; soft < 2; ++soft) {
        TFE_ContextSetSoftDevicePlacement(context, (unsigned char)soft, fresh(status));
        for (int i = 0; i < N_ELEMENTS(NAMES); ++i) {
            TFE_Op* op = new_op("AddV2", x, x);
            TFE_OpSetDevice(op, NAMES[i], fresh(status));
            print_code(NAMES[i], status);
            drop(execute(soft ? "soft" : "hard", op));
        }
    }
    drop(execute("still usable", new_op("Neg", x, NULL)));
    drop(x);
    end_eager();
}

/* tf#9826 and others: an index that is too large, a division by zero; the context lives on. */
static void errors_in_kernels(void) {
    begin_eager(false);
    TFE_TensorHandle *v = vector(3), *axis = handle_of(int_scalar(0)), *seven = handle_of(int_scalar(7));
    static const int32_t INDICES[] = {1, 3, -1};
    for (int i = 0; i < N_ELEMENTS(INDICES); ++i) {
        TFE_TensorHandle* index = handle_of(int_scalar(INDICES[i]));
        TFE_Op* op = new_op("GatherV2", v, index);
        TFE_OpAddInput(op, axis, status);
        drop(execute("gather", op));
        drop(index);
    }
    drop(execute("7 / 0", new_op("FloorDiv", seven, axis)));
    drop(execute("shapes", new_op("MatMul", v, v)));
    drop(execute("still usable", new_op("Neg", v, NULL)));
    drop(v);
    drop(axis);
    drop(seven);
    end_eager();
}

/* tf#53950 */
static void function_without_a_name(void) {
    begin_eager(false);
    TFE_ContextAddFunctionDef(context, "\x0a\x00", 2, fresh(status)); /* signature: nothing */
    print_status("no name", status);
    TFE_TensorHandle* x = vector(2);
    drop(execute("still usable", new_op("Neg", x, NULL)));
    drop(x);
    end_eager();
}

static void add_function(TF_Graph* body, const char* name, TF_Output input, TF_Output output) {
    TF_Function* function =
        TF_GraphToFunction(body, name, 0, -1, NULL, 1, &input, 1, &output, NULL, NULL, NULL, fresh(status));
    TFE_ContextAddFunction(context, function, fresh(status));
    print_status(name, status);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
}

static TFE_Op* loop_from(TFE_TensorHandle* start) {
    TFE_Op* op = new_op("While", NULL, NULL);
    TFE_OpAddInputList(op, &start, 1, fresh(status));
    TFE_OpSetAttrFunctionName(op, "cond", "below", 5);
    TFE_OpSetAttrFunctionName(op, "body", "turn", 4);
    return op;
}

static void* cancel_soon(void* manager) {
    nanosleep(&(struct timespec){0, 100000000}, NULL);
    TFE_CancellationManagerStartCancel(manager);
    return NULL;
}

/* tf#22217: an endless loop ends by cancellation, and the next call works. while (i < 10) i = i * 2 */
static void endless_loop(void) {
    begin_eager(false);
    TF_Graph *test = TF_NewGraph(), *body = TF_NewGraph();
    TF_Output i = placeholder(test, "i", TF_INT32), k = placeholder(body, "k", TF_INT32);
    add_function(test, "below", i, binary(test, "Less", "less", i, int_constant(test, "ten", 10)));
    add_function(body, "turn", k, binary(body, "Mul", "twice", k, int_constant(body, "two", 2)));
    TFE_TensorHandle *one = handle_of(int_scalar(1)), *zero = handle_of(int_scalar(0)), *none = NULL;
    drop(execute("from 1", loop_from(one)));
    TFE_CancellationManager* manager = TFE_NewCancellationManager();
    TFE_Op* op = loop_from(zero);
    TFE_OpSetCancellationManager(op, manager, fresh(status));
    pthread_t canceller;
    pthread_create(&canceller, NULL, cancel_soon, manager);
    int count = 1;
    TFE_Execute(op, &none, &count, fresh(status));
    print_code("endless", status);
    pthread_join(canceller, NULL);
    TFE_DeleteOp(op);
    TFE_DeleteCancellationManager(manager);
    drop(execute("from 1", loop_from(one)));
    drop(one);
    drop(zero);
    end_eager();
}

static const Case CASES[] = {
    {"strings", strings},
    {"halves", halves},
    {"shapes_of_a_queue", shapes_of_a_queue},
    {"table", table},
    {"checkpoint_by_a_file_of_it", checkpoint_by_a_file_of_it},
    {"channels_first", channels_first},
    {"device_that_is_not_there", device_that_is_not_there},
    {"errors_in_kernels", errors_in_kernels},
    {"function_without_a_name", function_without_a_name},
    {"endless_loop", endless_loop},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
