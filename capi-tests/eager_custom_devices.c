/* Devices that a program registers: copies in and out, execution, packing, and where ops are placed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/eager/c_api_experimental.h>

#include "harness/eager.h"
#include "harness/harness.h"

static const char* const NAME = "/job:localhost/replica:0/task:0/device:CUSTOM:0";
static const char* const OTHER = "/job:localhost/replica:0/task:0/device:CUSTOM:1";
static const char* const HOST = "/job:localhost/replica:0/task:0/device:CPU:0";

/* A device that wraps handles of the host and counts what is done to it. */
typedef struct {
    const char* name;
    int copied_to, copied_from, executed, packed;
    bool fails;
} Device;

typedef struct {
    TFE_TensorHandle* handle;
    int parts;
} Wrapped;

static int alive;

static int num_dims(void* data, TF_Status* s) { return TFE_TensorHandleNumDims(((Wrapped*)data)->handle, s); }

static int64_t dim(void* data, int index, TF_Status* s) {
    return TFE_TensorHandleDim(((Wrapped*)data)->handle, index, s);
}

static void free_wrapped(void* data) {
    TFE_DeleteTensorHandle(((Wrapped*)data)->handle);
    free(data);
    --alive;
}

static TF_Buffer* summarize(void* data, TF_Status* s) {
    (void)data;
    TF_SetStatus(s, TF_OK, "");
    return TF_NewBufferFromString("wrapped", 7);
}

/* Takes the handle over. */
static TFE_TensorHandle* wrap(TFE_Context* where, Device* device, TFE_TensorHandle* handle, int parts, TF_Status* s) {
    Wrapped* wrapped = malloc(sizeof *wrapped);
    wrapped->handle = handle;
    wrapped->parts = parts;
    TFE_CustomDeviceTensorHandle methods;
    memset(&methods, 0, sizeof methods);
    methods.version = TFE_CUSTOM_DEVICE_VERSION;
    methods.num_dims = num_dims;
    methods.dim = dim;
    methods.deallocator = free_wrapped;
    methods.summarize = summarize;
    ++alive;
    return TFE_NewCustomDeviceTensorHandle(where, device->name, TFE_TensorHandleDataType(handle), wrapped, methods, s);
}

static TFE_TensorHandle* copy_to(TFE_Context* where, TFE_TensorHandle* tensor, TF_Status* s, void* info) {
    Device* device = info;
    ++device->copied_to;
    return wrap(where, device, TFE_TensorHandleCopySharingTensor(tensor, s), 1, s);
}

static TFE_TensorHandle* copy_from(TFE_Context* where, TFE_TensorHandle* tensor, const char* target, TF_Status* s,
                                   void* info) {
    (void)where;
    Device* device = info;
    ++device->copied_from;
    printf("copied to %s\n", target);
    if (device->fails) {
        TF_SetStatus(s, TF_UNAVAILABLE, "no way out");
        return NULL;
    }
    Wrapped* wrapped = TFE_TensorHandleDevicePointer(tensor, s);
    if (TF_GetCode(s) != TF_OK) return NULL;
    return TFE_TensorHandleCopySharingTensor(wrapped->handle, s);
}

static void execute_on(const TFE_Op* original, int* n_outputs, TFE_TensorHandle** outputs, TF_Status* s, void* info) {
    Device* device = info;
    ++device->executed;
    const char* name = TFE_OpGetName(original, s);
    TFE_Context* where = TFE_OpGetContext(original, s);
    printf("executes %s on [%s], room %d\n", name, TFE_OpGetDevice(original, s), *n_outputs);
    if (device->fails) {
        TF_SetStatus(s, TF_UNAVAILABLE, "will not run");
        return;
    }
    TFE_Op* op = TFE_NewOp(where, name, s);
    if (TF_GetCode(s) != TF_OK) return;
    TFE_OpAddAttrs(op, TFE_OpGetAttrs(original));
    TFE_OpSetDevice(op, HOST, s);
    for (int i = 0; i < TFE_OpGetFlatInputCount(original, s); ++i) {
        TFE_TensorHandle* input = TFE_OpGetFlatInput(original, i, s);
        if (strcmp(TFE_TensorHandleDeviceName(input, s), device->name) == 0) {
            input = ((Wrapped*)TFE_TensorHandleDevicePointer(input, s))->handle;
        }
        TFE_OpAddInput(op, input, s);
    }
    TFE_TensorHandle* results[4];
    int count = 4;
    TFE_Execute(op, results, &count, s);
    TFE_DeleteOp(op);
    if (TF_GetCode(s) != TF_OK) return;
    *n_outputs = count;
    for (int i = 0; i < count; ++i) outputs[i] = wrap(where, device, results[i], 1, s);
}

/* With two devices the order of the deletions is not said. */
static bool quiet_deletions;

static void delete_device(void* info) {
    Device* device = info;
    if (!quiet_deletions) printf("deleted %s: to %d, from %d, executed %d, packed %d\n", device->name,
                                 device->copied_to, device->copied_from, device->executed, device->packed);
    free(device);
}

static TFE_TensorHandle* pack(TFE_Context* where, TFE_TensorHandle** handles, int count, TF_Status* s, void* info) {
    Device* device = info;
    ++device->packed;
    return wrap(where, device, TFE_TensorHandleCopySharingTensor(handles[0], s), count, s);
}

static bool pins(const TFE_Op* op, TF_Status* s) { return strcmp(TFE_OpGetName(op, s), "Mul") == 0; }

static Device* register_device(const char* name, bool with_pack, bool with_pins) {
    Device* device = calloc(1, sizeof *device);
    device->name = name;
    TFE_CustomDevice custom;
    memset(&custom, 0, sizeof custom);
    custom.version = TFE_CUSTOM_DEVICE_VERSION;
    custom.copy_tensor_to_device = copy_to;
    custom.copy_tensor_from_device = copy_from;
    custom.execute = execute_on;
    custom.delete_device = delete_device;
    custom.pack = with_pack ? pack : NULL;
    custom.shall_pin_to_this_device = with_pins ? pins : NULL;
    TFE_RegisterCustomDevice(context, custom, name, device, fresh(status));
    print_status("register", status);
    return device;
}

static void print_devices(void) {
    TF_DeviceList* list = TFE_ContextListDevices(context, status);
    for (int i = 0; i < TF_DeviceListCount(list); ++i) printf("  %s\n", TF_DeviceListName(list, i, status));
    TF_DeleteDeviceList(list);
}

static void registering(void) {
    begin_eager(false);
    printf("is custom %d\n", TFE_IsCustomDevice(context, NAME));
    register_device(NAME, false, false);
    printf("is custom %d, %d\n", TFE_IsCustomDevice(context, NAME), TFE_IsCustomDevice(context, HOST));
    print_devices();
    register_device(NAME, false, false);
    register_device(HOST, false, false);
    register_device("/device:CUSTOM:3", false, false);
    register_device("nonsense", false, false);
    end_eager();
}

static void copies(void) {
    begin_eager(false);
    register_device(NAME, false, false);
    TFE_TensorHandle *x = vector(3), *there = TFE_TensorHandleCopyToDevice(x, context, NAME, fresh(status));
    print_status("there", status);
    printf("on %s, backed by %s\n", TFE_TensorHandleDeviceName(there, fresh(status)),
           TFE_TensorHandleBackingDeviceName(there, fresh(status)));
    printf("kind %s, number %d\n", TFE_TensorHandleDeviceType(there, fresh(status)),
           TFE_TensorHandleDeviceID(there, fresh(status)));
    printf("memory: %zu", TFE_TensorHandleDeviceMemorySize(there, fresh(status)));
    print_status("", status);
    printf("type %d, rank %d, elements %lld, dim %lld\n", TFE_TensorHandleDataType(there),
           TFE_TensorHandleNumDims(there, fresh(status)), (long long)TFE_TensorHandleNumElements(there, fresh(status)),
           (long long)TFE_TensorHandleDim(there, 0, fresh(status)));
    print_handle("resolved", there);
    TFE_TensorHandle* back = TFE_TensorHandleCopyToDevice(there, context, HOST, fresh(status));
    print_status("back", status);
    print_handle("back", back);
    TFE_TensorHandle* shared = TFE_TensorHandleCopySharingTensor(there, fresh(status));
    print_status("shared", status);
    printf("on %s\n", TFE_TensorHandleDeviceName(shared, fresh(status)));
    printf("alive %d\n", alive);
    TFE_DeleteTensorHandle(there);
    printf("alive %d\n", alive);
    TFE_DeleteTensorHandle(shared);
    printf("alive %d\n", alive);
    TFE_DeleteTensorHandle(back);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void execution(void) {
    begin_eager(false);
    register_device(NAME, false, false);
    TFE_TensorHandle *x = vector(3), *there = TFE_TensorHandleCopyToDevice(x, context, NAME, fresh(status));
    TFE_TensorHandle* sum = execute("by its input", new_op("AddV2", there, x));
    printf("on %s\n", TFE_TensorHandleDeviceName(sum, fresh(status)));
    TFE_Op* op = new_op("Mul", x, x);
    TFE_OpSetDevice(op, NAME, fresh(status));
    print_status("set device", status);
    TFE_DeleteTensorHandle(execute("asked for", op));
    op = new_op("AddV2", there, x);
    TFE_OpSetDevice(op, HOST, fresh(status));
    TFE_TensorHandle* here = execute("on the host", op);
    printf("on %s\n", TFE_TensorHandleDeviceName(here, fresh(status)));
    op = new_op("MatMul", NULL, NULL);
    const int64_t dims[] = {2, 3};
    TFE_TensorHandle *matrix = floats(2, dims), *across = TFE_TensorHandleCopyToDevice(matrix, context, NAME, fresh(status));
    TFE_OpAddInput(op, across, status);
    TFE_OpAddInput(op, across, status);
    TFE_OpSetAttrBool(op, "transpose_a", 1);
    TFE_DeleteTensorHandle(execute("with attributes", op));
    TFE_DeleteTensorHandle(execute("fails inside", new_op("MatMul", across, across)));
    TFE_DeleteTensorHandle(matrix);
    TFE_DeleteTensorHandle(across);
    TFE_DeleteTensorHandle(here);
    TFE_DeleteTensorHandle(sum);
    TFE_DeleteTensorHandle(there);
    TFE_DeleteTensorHandle(x);
    printf("alive %d\n", alive);
    end_eager();
}

static void two_devices(void) {
    begin_eager(false);
    quiet_deletions = true;
    register_device(NAME, false, false);
    register_device(OTHER, false, true);
    TFE_TensorHandle *x = vector(3), *a = TFE_TensorHandleCopyToDevice(x, context, NAME, fresh(status));
    TFE_TensorHandle* b = TFE_TensorHandleCopyToDevice(x, context, OTHER, fresh(status));
    execute("on both", new_op("AddV2", a, b));
    TFE_DeleteTensorHandle(execute("not pinned", new_op("AddV2", b, x)));
    TFE_DeleteTensorHandle(execute("pinned", new_op("Mul", b, x)));
    TFE_TensorHandle* moved = TFE_TensorHandleCopyToDevice(a, context, OTHER, fresh(status));
    print_status("from one to the other", status);
    if (moved) TFE_DeleteTensorHandle(moved);
    TFE_DeleteTensorHandle(a);
    TFE_DeleteTensorHandle(b);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void failures(void) {
    begin_eager(false);
    Device* device = register_device(NAME, false, false);
    TFE_TensorHandle *x = vector(3), *there = TFE_TensorHandleCopyToDevice(x, context, NAME, fresh(status));
    device->fails = true;
    execute("will not run", new_op("AddV2", there, x));
    print_handle("no way out", there);
    TFE_Op* op = new_op("AddV2", there, x);
    TFE_OpSetDevice(op, HOST, fresh(status));
    execute("input cannot come", op);
    TFE_DeleteTensorHandle(there);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static void packing(void) {
    begin_eager(false);
    quiet_deletions = true;
    register_device(NAME, true, false);
    register_device(OTHER, false, false);
    TFE_TensorHandle* x = vector(3);
    TFE_TensorHandle* parts[2] = {TFE_TensorHandleCopyToDevice(x, context, NAME, fresh(status)),
                                  TFE_TensorHandleCopyToDevice(x, context, NAME, fresh(status))};
    int count = 2;
    TFE_TensorHandle* packed = TFE_CreatePackedTensorHandle(context, parts, &count, fresh(status));
    print_status("packed on the host", status);
    if (packed) {
        printf("on %s, type %d\n", TFE_TensorHandleDeviceName(packed, fresh(status)), TFE_TensorHandleDataType(packed));
        TFE_DeleteTensorHandle(packed);
    }
    TFE_DeleteTensorHandle(parts[1]);
    parts[1] = TFE_TensorHandleCopyToDevice(x, context, OTHER, fresh(status));
    packed = TFE_CreatePackedTensorHandle(context, parts, &count, fresh(status));
    print_status("of two devices", status);
    TFE_DeleteTensorHandle(packed);
    TFE_DeleteTensorHandle(parts[0]);
    parts[0] = TFE_TensorHandleCopySharingTensor(x, fresh(status));
    packed = TFE_CreatePackedTensorHandle(context, parts, &count, fresh(status));
    print_status("of host and device", status);
    TFE_DeleteTensorHandle(packed);
    TFE_DeleteTensorHandle(parts[0]);
    parts[0] = TFE_TensorHandleCopyToDevice(x, context, OTHER, fresh(status));
    packed = TFE_CreatePackedTensorHandle(context, parts, &count, fresh(status));
    print_status("that cannot pack", status);
    TFE_DeleteTensorHandle(packed);
    for (int i = 0; i < 2; ++i) TFE_DeleteTensorHandle(parts[i]);
    TFE_DeleteTensorHandle(x);
    end_eager();
}

static const Case CASES[] = {
    {"registering", registering}, {"copies", copies},     {"execution", execution},
    {"two_devices", two_devices}, {"failures", failures}, {"packing", packing},
};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
