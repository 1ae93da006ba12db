/* Handles: from tensors, scalars and device memory, packed ones; devices and their numbers; where inputs may lie. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_experimental.h>

#include "harness/build.h"
#include "harness/eager.h"
#include "harness/harness.h"

static void print_where(const char* what, TFE_TensorHandle* handle) {
    printf("%s: %s, backed by %s", what, TFE_TensorHandleDeviceName(handle, fresh(status)),
           TFE_TensorHandleBackingDeviceName(handle, fresh(status)));
    printf(", kind %s, number %d\n", TFE_TensorHandleDeviceType(handle, fresh(status)),
           TFE_TensorHandleDeviceID(handle, fresh(status)));
}

static void memory(void) {
    begin_eager(false);
    TFE_TensorHandle* x = vector(3);
    print_where("x", x);
    TFE_TensorHandleGetStatus(x, fresh(status));
    print_status("its status", status);
    const float* pointer = TFE_TensorHandleDevicePointer(x, fresh(status));
    print_status("pointer", status);
    printf("%g %g %g, %zu bytes\n", pointer[0], pointer[1], pointer[2], TFE_TensorHandleDeviceMemorySize(x, fresh(status)));
    print_status("bytes", status);
    TFE_TensorHandle* sum = execute("sum", new_op("AddV2", x, x));
    print_where("sum", sum);
    TFE_DeleteTensorHandle(sum);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void given_back(void* data, size_t length, void* argument) {
    printf("given back %zu bytes, the same %d\n", length, data == argument);
    free(data);
}

static float* aligned(void) {
    void* memory = NULL;
    if (posix_memalign(&memory, 64, 64)) exit(1);
    return memory;
}

static void device_memory(void) {
    begin_eager(false);
    const int64_t dims[] = {2, 2};
    float* data = aligned();
    for (int i = 0; i < 4; ++i) data[i] = (float)i;
    TFE_TensorHandle* x = TFE_NewTensorHandleFromDeviceMemory(
        context, "/job:localhost/replica:0/task:0/device:CPU:0", TF_FLOAT, dims, 2, data, 16, given_back, data, fresh(status));
    print_status("new", status);
    print_where("x", x);
    print_handle("x", x);
    printf("in place %d\n", TFE_TensorHandleDevicePointer(x, fresh(status)) == data);
    TFE_TensorHandle* sum = execute("sum", new_op("AddV2", x, x));
    TFE_DeleteTensorHandle(sum);
    printf("deleting\n");
    TFE_DeleteTensorHandle(x);
    data = aligned();
    x = TFE_NewTensorHandleFromDeviceMemory(context, "nowhere", TF_FLOAT, dims, 2, data, 16, given_back, data,
                                            fresh(status));
    printf("nowhere %d", x != NULL);
    print_status("", status);
    end_eager();
}

static void from_tensors(void) {
    begin_eager(false);
    const int64_t dims[] = {2};
    TF_Tensor* tensor = TFE_AllocateHostTensor(context, TF_INT32, dims, 1, fresh(status));
    print_status("allocate", status);
    printf("type %d, %d dims, %zu bytes\n", TF_TensorType(tensor), TF_NumDims(tensor), TF_TensorByteSize(tensor));
    int32_t* elements = TF_TensorData(tensor);
    elements[0] = 7, elements[1] = 8;
    TFE_TensorHandle* x = TFE_NewTensorHandleFromTensor(context, tensor, fresh(status));
    print_status("handle", status);
    TF_DeleteTensor(tensor);
    print_where("x", x);
    print_handle("x", x);
    TFE_DeleteTensorHandle(x);
    tensor = string_scalar("hello");
    x = TFE_NewTensorHandleFromTensor(context, tensor, fresh(status));
    TF_DeleteTensor(tensor);
    print_handle("text", x);
    TFE_DeleteTensorHandle(x);
    float value = 2.5f;
    x = TFE_NewTensorHandleFromScalar(TF_FLOAT, &value, sizeof value, fresh(status));
    print_status("scalar", status);
    print_where("scalar", x);
    print_handle("scalar", x);
    TFE_DeleteTensorHandle(x);
    int64_t number = -3;
    x = TFE_NewTensorHandleFromScalar(TF_INT64, &number, sizeof number, fresh(status));
    print_handle("scalar", x);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void print_devices(void) {
    TF_DeviceList* list = TFE_ContextListDevices(context, status);
    for (int i = 0; i < TF_DeviceListCount(list); ++i) {
        printf("  %s %s\n", TF_DeviceListName(list, i, status), TF_DeviceListType(list, i, status));
    }
    TF_DeleteDeviceList(list);
}

static void logical_devices(void) {
    begin_eager(false);
    TFE_SetLogicalCpuDevices(context, 3, "/job:localhost/replica:0/task:0", fresh(status));
    print_status("three", status);
    print_devices();
    TFE_TensorHandle *x = vector(2), *there = TFE_TensorHandleCopyToDevice(x, context, "/device:CPU:2", fresh(status));
    print_status("copy", status);
    print_where("there", there);
    TFE_Op* op = new_op("AddV2", there, there);
    TFE_OpSetDevice(op, "/device:CPU:1", fresh(status));
    TFE_TensorHandle* sum = execute("on the second", op);
    print_where("sum", sum);
    TFE_DeleteTensorHandle(sum);
    sum = execute("where it is", new_op("AddV2", there, there));
    print_where("sum", sum);
    TFE_DeleteTensorHandle(sum);
    op = new_op("VarHandleOp", NULL, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpSetAttrShape(op, "shape", (const int64_t[]){2}, 1, status);
    TFE_OpSetAttrString(op, "shared_name", "v", 1);
    TFE_OpSetDevice(op, "/device:CPU:1", fresh(status));
    TFE_TensorHandle* variable = execute_quietly("variable", op);
    print_where("variable", variable);
    op = new_op("AssignVariableOp", variable, x);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    execute("assign", op);
    op = new_op("ReadVariableOp", variable, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_TensorHandle* read = execute("read", op);
    print_where("read", read);
    TFE_DeleteTensorHandle(read);
    TFE_SetLogicalCpuDevices(context, 2, "/job:localhost/replica:0/task:0", fresh(status));
    print_status("again", status);
    print_devices();
    TFE_SetLogicalCpuDevices(context, 2, "/job:worker/replica:0/task:1", fresh(status));
    print_status("of a worker", status);
    print_devices();
    TFE_DeleteTensorHandle(variable);
    TFE_DeleteTensorHandle(there);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static TFE_TensorHandle* variable_on(const char* device, const char* container) {
    TFE_Op* op = new_op("VarHandleOp", NULL, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpSetAttrShape(op, "shape", NULL, 0, status);
    TFE_OpSetAttrString(op, "container", container, strlen(container));
    TFE_OpSetAttrString(op, "shared_name", "v", 1);
    TFE_OpSetDevice(op, device, fresh(status));
    return execute_quietly("variable", op);
}

static void read_variable(const char* what, TFE_TensorHandle* variable) {
    TFE_Op* op = new_op("ReadVariableOp", variable, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_TensorHandle* read = execute(what, op);
    if (read) {
        print_where("  where", read);
        print_handle("  value", read);
    }
    TFE_DeleteTensorHandle(read);
}

static TF_Output read_in(TF_Graph* body, const char* name, TF_Output variable) {
    TF_OperationDescription* read = TF_NewOperation(body, "ReadVariableOp", name);
    TF_AddInput(read, variable);
    TF_SetAttrType(read, "dtype", TF_FLOAT);
    return finish(read);
}

static void add_read_both(void) {
    TF_Graph* body = TF_NewGraph();
    TF_Output inputs[] = {placeholder(body, "a", TF_RESOURCE), placeholder(body, "b", TF_RESOURCE)};
    TF_Output scaled = binary(body, "Mul", "scaled", read_in(body, "read_b", inputs[1]), float_constant(body, "ten", 10));
    TF_Output sum = binary(body, "AddV2", "sum", read_in(body, "read_a", inputs[0]), scaled);
    TF_Function* function =
        TF_GraphToFunction(body, "read_both", 0, -1, NULL, 2, inputs, 1, &sum, NULL, NULL, NULL, fresh(status));
    print_status("function", status);
    TFE_ContextAddFunction(context, function, fresh(status));
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
}

/* Each device has resources of its own: one name on two of them is two variables, and a name is two in two containers. */
static void resources_of_logical_devices(void) {
    begin_eager(false);
    TFE_SetLogicalCpuDevices(context, 3, "/job:localhost/replica:0/task:0", fresh(status));
    static const char* const DEVICES[] = {"/device:CPU:0", "/device:CPU:1", "/device:CPU:2", "/device:CPU:1"};
    static const char* const CONTAINERS[] = {"", "", "", "other"};
    TFE_TensorHandle *first[4], *second[4];
    for (int i = 0; i < 4; ++i) {
        first[i] = variable_on(DEVICES[i], CONTAINERS[i]);
        print_where("variable", first[i]);
        TFE_TensorHandle* value = number((float)i + 1);
        TFE_Op* op = new_op("AssignVariableOp", first[i], value);
        TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
        if (i < 2 || i == 3) execute("assign", op);
        else TFE_DeleteOp(op);
        TFE_DeleteTensorHandle(value);
    }
    for (int i = 0; i < 4; ++i) {
        second[i] = variable_on(DEVICES[i], CONTAINERS[i]);
        read_variable("read", first[i]);
        read_variable("by its name", second[i]);
    }
    add_read_both();
    TFE_TensorHandle* sum = execute("a function with variables of two devices", new_op("read_both", first[0], first[1]));
    TFE_DeleteTensorHandle(sum);
    TFE_Op* op = new_op("DestroyResourceOp", second[1], NULL);
    TFE_OpSetDevice(op, "/device:CPU:0", fresh(status));
    execute("destroy", op);
    read_variable("another device's", first[0]);
    for (int i = 0; i < 4; ++i) {
        TFE_DeleteTensorHandle(first[i]);
        TFE_DeleteTensorHandle(second[i]);
    }
    end_eager();
}

static void placement_policies(void) {
    static const TFE_ContextDevicePlacementPolicy POLICIES[] = {
        TFE_DEVICE_PLACEMENT_EXPLICIT, TFE_DEVICE_PLACEMENT_WARN, TFE_DEVICE_PLACEMENT_SILENT,
        TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32};
    for (int i = 0; i < N_ELEMENTS(POLICIES); ++i) {
        begin_eager(false);
        TFE_SetLogicalCpuDevices(context, 2, "/job:localhost/replica:0/task:0", fresh(status));
        TFE_ContextSetThreadLocalDevicePlacementPolicy(context, POLICIES[i]);
        printf("policy %d\n", TFE_ContextGetDevicePlacementPolicy(context));
        TFE_TensorHandle* inputs[] = {vector(2), of_type(TF_INT32, 2)};
        for (int j = 0; j < 2; ++j) {
            TFE_Op* op = new_op("AddV2", inputs[j], inputs[j]);
            TFE_OpSetDevice(op, "/device:CPU:1", fresh(status));
            TFE_DeleteTensorHandle(execute(j ? "int32" : "float", op));
            TFE_DeleteTensorHandle(inputs[j]);
        }
        end_eager();
    }
}

static void soft_placement(void) {
    begin_eager(false);
    TFE_TensorHandle* x = vector(2);
    for (int soft = 1; soft >= 0; --soft) {
        TFE_ContextSetSoftDevicePlacement(context, (unsigned char)soft, fresh(status));
        print_status("soft", status);
        TFE_Op* op = new_op("AddV2", x, x);
        TFE_OpSetDevice(op, "/device:GPU:7", fresh(status));
        TFE_TensorHandle* sum = execute("on no GPU", op);
        if (sum) print_where("sum", sum);
        TFE_DeleteTensorHandle(sum);
    }
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void packed(void) {
    begin_eager(false);
    TFE_SetLogicalCpuDevices(context, 2, "/job:localhost/replica:0/task:0", fresh(status));
    TFE_TensorHandle* x = vector(2);
    TFE_TensorHandle* parts[3] = {TFE_TensorHandleCopyToDevice(x, context, "/device:CPU:0", fresh(status)),
                                  TFE_TensorHandleCopyToDevice(x, context, "/device:CPU:1", fresh(status)), vector(3)};
    int count = 2;
    TFE_TensorHandle* both = TFE_CreatePackedTensorHandle(context, parts, &count, fresh(status));
    print_status("packed", status);
    print_where("both", both);
    printf("type %d, rank %d", TFE_TensorHandleDataType(both), TFE_TensorHandleNumDims(both, fresh(status)));
    print_status("", status);
    printf("elements %lld, dim %lld\n", (long long)TFE_TensorHandleNumElements(both, fresh(status)),
           (long long)TFE_TensorHandleDim(both, 0, fresh(status)));
    print_handle("resolved", both);
    TFE_TensorHandle* pair[2] = {both, x};
    count = 2;
    TFE_TensorHandle* nested = TFE_CreatePackedTensorHandle(context, pair, &count, fresh(status));
    print_status("of a packed one", status);
    TFE_DeleteTensorHandle(nested);
    count = 3;
    TFE_TensorHandle* unequal = TFE_CreatePackedTensorHandle(context, parts, &count, fresh(status));
    print_status("of other shapes", status);
    TFE_DeleteTensorHandle(unequal);
    TFE_TensorHandle* types[2] = {x, of_type(TF_INT32, 2)};
    count = 2;
    TFE_TensorHandle* mixed = TFE_CreatePackedTensorHandle(context, types, &count, fresh(status));
    print_status("of other types", status);
    TFE_DeleteTensorHandle(mixed);
    count = 0;
    TFE_TensorHandle* none = TFE_CreatePackedTensorHandle(context, parts, &count, fresh(status));
    print_status("of none", status);
    TFE_DeleteTensorHandle(none);
    count = 1;
    TFE_TensorHandle* single = TFE_CreatePackedTensorHandle(context, &x, &count, fresh(status));
    print_status("of one", status);
    if (single) print_where("single", single);
    TFE_DeleteTensorHandle(single);
    TFE_DeleteTensorHandle(types[1]);
    for (int i = 0; i < 3; ++i) TFE_DeleteTensorHandle(parts[i]);
    TFE_DeleteTensorHandle(both);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void invalid(void) {
    begin_eager(false);
    printf("type %d", TFE_TensorHandleDeviceType(NULL, fresh(status)) != NULL);
    print_status("", status);
    printf("number %d", TFE_TensorHandleDeviceID(NULL, fresh(status)));
    print_status("", status);
    printf("pointer %d", TFE_TensorHandleDevicePointer(NULL, fresh(status)) != NULL);
    print_status("", status);
    printf("bytes %zu", TFE_TensorHandleDeviceMemorySize(NULL, fresh(status)));
    print_status("", status);
    end_eager();
}

/* Two threads on one handle. */
static void* use_handle(void* argument) {
    TFE_TensorHandle* x = argument;
    TF_Status* mine = TF_NewStatus();
    int good = 0;
    for (int i = 0; i < 2000; ++i) {
        TFE_TensorHandle* second = TFE_TensorHandleCopySharingTensor(x, mine);
        TF_Tensor* tensor = TFE_TensorHandleResolve(second, mine);
        good += TFE_TensorHandleNumDims(x, mine) == 1 && TF_TensorByteSize(tensor) == 12 &&
                strcmp(TFE_TensorHandleDeviceType(second, mine), "CPU") == 0;
        TF_DeleteTensor(tensor);
        TFE_DeleteTensorHandle(second);
    }
    TF_DeleteStatus(mine);
    return (void*)(intptr_t)good;
}

static void threads(void) {
    begin_eager(false);
    TFE_TensorHandle* x = vector(3);
    pthread_t both[2];
    for (int i = 0; i < 2; ++i) pthread_create(&both[i], NULL, use_handle, x);
    for (int i = 0; i < 2; ++i) {
        void* good;
        pthread_join(both[i], &good);
        printf("%d\n", (int)(intptr_t)good);
    }
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static const Case CASES[] = {
    {"memory", memory},
    {"device_memory", device_memory},
    {"from_tensors", from_tensors},
    {"logical_devices", logical_devices},
    {"resources_of_logical_devices", resources_of_logical_devices},
    {"placement_policies", placement_policies},
    {"soft_placement", soft_placement},
    {"packed", packed},
    {"invalid", invalid},
    {"threads", threads},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
