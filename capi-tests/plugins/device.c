/* A plug-in with a device and a kernel on it: y = factor * x + n, n in memory of the host. Memory of the device holds every
 * byte inverted, so that nobody else can read it by chance. */
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/experimental/stream_executor/stream_executor.h>
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>

#define EXPORT __attribute__((visibility("default")))

static int blocks, copies_in, copies_out;
static struct SP_Stream_st {
    int number;
} stream = {7};

/* Blocks of device memory in use, copies to the device and from it. */
EXPORT int device_blocks(void) { return blocks; }
EXPORT int device_copied(void) { return copies_in > 0 && copies_out > 0; }

static void invert(void* to, const void* from, uint64_t size) {
    for (uint64_t i = 0; i < size; ++i) ((unsigned char*)to)[i] = (unsigned char)~((const unsigned char*)from)[i];
}

static void allocate(const SP_Device* device, uint64_t size, int64_t space, SP_DeviceMemoryBase* memory) {
    (void)device, (void)space;
    memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
    if (posix_memalign(&memory->opaque, 64, size + 64) != 0) memory->opaque = NULL;
    memory->size = size;
    __sync_fetch_and_add(&blocks, 1);
}

static void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
    (void)device;
    free(memory->opaque);
    memory->opaque = NULL;
    memory->size = 0;
    __sync_fetch_and_sub(&blocks, 1);
}

static void* host_allocate(const SP_Device* device, uint64_t size) {
    (void)device;
    void* memory = NULL;
    return posix_memalign(&memory, 64, size + 64) == 0 ? memory : NULL;
}

static void host_deallocate(const SP_Device* device, void* memory) {
    (void)device;
    free(memory);
}

static TF_Bool get_stats(const SP_Device* device, SP_AllocatorStats* stats) {
    (void)device, (void)stats;
    return 0;
}

static TF_Bool memory_usage(const SP_Device* device, int64_t* available, int64_t* total) {
    (void)device;
    *available = *total = 1 << 30;
    return 1;
}

static void ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

static void create_stream(const SP_Device* device, SP_Stream* made, TF_Status* status) {
    (void)device;
    *made = &stream;
    ok(status);
}
static void destroy_stream(const SP_Device* device, SP_Stream it) { (void)device, (void)it; }
static void depend(const SP_Device* device, SP_Stream a, SP_Stream b, TF_Status* status) {
    (void)device, (void)a, (void)b;
    ok(status);
}
static void with_stream(const SP_Device* device, SP_Stream it, TF_Status* status) {
    (void)device, (void)it;
    ok(status);
}
static void create_event(const SP_Device* device, SP_Event* event, TF_Status* status) {
    (void)device;
    *event = NULL;
    ok(status);
}
static void destroy_event(const SP_Device* device, SP_Event event) { (void)device, (void)event; }
static SE_EventStatus event_status(const SP_Device* device, SP_Event event) {
    (void)device, (void)event;
    return SE_EVENT_COMPLETE;
}
static void record_event(const SP_Device* device, SP_Stream it, SP_Event event, TF_Status* status) {
    (void)device, (void)it, (void)event;
    ok(status);
}
static void wait_for_event(const SP_Device* const device, SP_Stream it, SP_Event event, TF_Status* const status) {
    (void)device, (void)it, (void)event;
    ok(status);
}
static void create_timer(const SP_Device* device, SP_Timer* timer, TF_Status* status) {
    (void)device;
    *timer = NULL;
    ok(status);
}
static void destroy_timer(const SP_Device* device, SP_Timer timer) { (void)device, (void)timer; }
static void with_timer(const SP_Device* device, SP_Stream it, SP_Timer timer, TF_Status* status) {
    (void)device, (void)it, (void)timer;
    ok(status);
}

static void to_host(const SP_Device* device, void* to, const SP_DeviceMemoryBase* from, uint64_t size,
                    TF_Status* status) {
    (void)device;
    __sync_fetch_and_add(&copies_out, 1);
    invert(to, from->opaque, size);
    ok(status);
}
static void to_device(const SP_Device* device, SP_DeviceMemoryBase* to, const void* from, uint64_t size,
                      TF_Status* status) {
    (void)device;
    __sync_fetch_and_add(&copies_in, 1);
    invert(to->opaque, from, size);
    ok(status);
}
static void within(const SP_Device* device, SP_DeviceMemoryBase* to, const SP_DeviceMemoryBase* from, uint64_t size,
                   TF_Status* status) {
    (void)device;
    memmove(to->opaque, from->opaque, size);
    ok(status);
}
static void stream_to_host(const SP_Device* device, SP_Stream it, void* to, const SP_DeviceMemoryBase* from,
                           uint64_t size, TF_Status* status) {
    (void)it;
    to_host(device, to, from, size, status);
}
static void stream_to_device(const SP_Device* device, SP_Stream it, SP_DeviceMemoryBase* to, const void* from,
                             uint64_t size, TF_Status* status) {
    (void)it;
    to_device(device, to, from, size, status);
}
static void stream_within(const SP_Device* device, SP_Stream it, SP_DeviceMemoryBase* to,
                          const SP_DeviceMemoryBase* from, uint64_t size, TF_Status* status) {
    (void)it;
    within(device, to, from, size, status);
}
static void block_for_event(const SP_Device* device, SP_Event event, TF_Status* status) {
    (void)device, (void)event;
    ok(status);
}
static void synchronize(const SP_Device* device, TF_Status* status) {
    (void)device;
    ok(status);
}
static void zero(const SP_Device* device, SP_Stream it, SP_DeviceMemoryBase* memory, uint64_t size,
                 TF_Status* status) {
    (void)device, (void)it;
    memset(memory->opaque, 0xff, size);
    ok(status);
}
static void fill(const SP_Device* device, SP_Stream it, SP_DeviceMemoryBase* memory, uint8_t pattern, uint64_t size,
                 TF_Status* status) {
    (void)device, (void)it;
    memset(memory->opaque, (unsigned char)~pattern, size);
    ok(status);
}
static void fill32(const SP_Device* device, SP_Stream it, SP_DeviceMemoryBase* memory, uint32_t pattern, uint64_t size,
                   TF_Status* status) {
    (void)device, (void)it, (void)memory, (void)pattern, (void)size;
    ok(status);
}
static TF_Bool call_back(const SP_Device* device, SP_Stream it, SE_StatusCallbackFn function, void* argument) {
    (void)device, (void)it;
    TF_Status* status = TF_NewStatus();
    function(argument, status);
    TF_DeleteStatus(status);
    return 1;
}

static void count(const SP_Platform* platform, int* devices, TF_Status* status) {
    (void)platform;
    *devices = 1;
    ok(status);
}

static void create_device(const SP_Platform* platform, SE_CreateDeviceParams* params, TF_Status* status) {
    (void)platform;
    params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
    params->device->hardware_name = "inverted memory";
    ok(status);
}
static void destroy_device(const SP_Platform* platform, SP_Device* device) { (void)platform, (void)device; }

static int32_t numa_node(const SP_Device* device) {
    (void)device;
    return -1;
}
static int64_t bandwidth(const SP_Device* device) {
    (void)device;
    return -1;
}
static double gflops(const SP_Device* device) {
    (void)device;
    return -1;
}

static void create_device_fns(const SP_Platform* platform, SE_CreateDeviceFnsParams* params, TF_Status* status) {
    (void)platform;
    params->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
    params->device_fns->get_numa_node = numa_node;
    params->device_fns->get_memory_bandwidth = bandwidth;
    params->device_fns->get_gflops = gflops;
    ok(status);
}
static void destroy_device_fns(const SP_Platform* platform, SP_DeviceFns* fns) { (void)platform, (void)fns; }

static void create_executor(const SP_Platform* platform, SE_CreateStreamExecutorParams* params, TF_Status* status) {
    (void)platform;
    SP_StreamExecutor* it = params->stream_executor;
    it->struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
    it->allocate = allocate, it->deallocate = deallocate;
    it->host_memory_allocate = host_allocate, it->host_memory_deallocate = host_deallocate;
    it->get_allocator_stats = get_stats, it->device_memory_usage = memory_usage;
    it->create_stream = create_stream, it->destroy_stream = destroy_stream;
    it->create_stream_dependency = depend, it->get_stream_status = with_stream;
    it->create_event = create_event, it->destroy_event = destroy_event;
    it->get_event_status = event_status, it->record_event = record_event;
    it->wait_for_event = wait_for_event;
    it->create_timer = create_timer, it->destroy_timer = destroy_timer;
    it->start_timer = it->stop_timer = with_timer;
    it->memcpy_dtoh = stream_to_host, it->memcpy_htod = stream_to_device, it->memcpy_dtod = stream_within;
    it->sync_memcpy_dtoh = to_host, it->sync_memcpy_htod = to_device, it->sync_memcpy_dtod = within;
    it->block_host_for_event = block_for_event, it->block_host_until_done = with_stream;
    it->synchronize_all_activity = synchronize;
    it->mem_zero = zero, it->memset = fill, it->memset32 = fill32;
    it->host_callback = call_back;
    ok(status);
#if WRONG == 3
    it->allocate = NULL;
#endif
}
static void destroy_executor(const SP_Platform* platform, SP_StreamExecutor* it) { (void)platform, (void)it; }

static uint64_t nanoseconds(SP_Timer timer) {
    (void)timer;
    return 0;
}
static void create_timer_fns(const SP_Platform* platform, SP_TimerFns* fns, TF_Status* status) {
    (void)platform;
    fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
    fns->nanoseconds = nanoseconds;
    ok(status);
}
static void destroy_timer_fns(const SP_Platform* platform, SP_TimerFns* fns) { (void)platform, (void)fns; }
static void destroy_platform(SP_Platform* platform) { (void)platform; }
static void destroy_platform_fns(SP_PlatformFns* fns) { (void)fns; }

EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
    params->struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
    SP_Platform* platform = params->platform;
    platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
    platform->name = "CAPI_TESTS_PLATFORM";
    platform->type = "CAPI_TESTS";
    SP_PlatformFns* fns = params->platform_fns;
    fns->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
    fns->get_device_count = count;
    fns->create_device = create_device, fns->destroy_device = destroy_device;
    fns->create_device_fns = create_device_fns, fns->destroy_device_fns = destroy_device_fns;
    fns->create_stream_executor = create_executor, fns->destroy_stream_executor = destroy_executor;
    fns->create_timer_fns = create_timer_fns, fns->destroy_timer_fns = destroy_timer_fns;
    params->destroy_platform = destroy_platform;
    params->destroy_platform_fns = destroy_platform_fns;
    ok(status);
#if WRONG == 1
    platform->type = "lower";
#elif WRONG == 2
    fns->create_device = NULL;
#endif
}

/* The op and its kernel. */
static void shape_of_input(TF_ShapeInferenceContext* context, TF_Status* status) {
    TF_ShapeHandle* shape = TF_NewShapeHandle();
    TF_ShapeInferenceContextGetInput(context, 0, shape, status);
    TF_ShapeInferenceContextSetOutput(context, 0, shape, status);
    TF_DeleteShapeHandle(shape);
}

static void compute(void* kernel, TF_OpKernelContext* context) {
    (void)kernel;
    TF_Status* status = TF_NewStatus();
    TF_Tensor *x = NULL, *n = NULL, *y = NULL;
    TF_GetInput(context, 0, &x, status);
    TF_GetInput(context, 1, &n, status);
    SP_Stream its_stream = TF_GetStream(context, status);
    int64_t count = x ? TF_TensorElementCount(x) : 0;
    if (TF_GetCode(status) == TF_OK)
        y = TF_AllocateOutput(context, 0, TF_FLOAT, &count, 1, (size_t)count * sizeof(float), status);
    int places = TF_IsHostMemoryInput(context, 0, status) + 2 * TF_IsHostMemoryInput(context, 1, status) +
                 4 * TF_IsHostMemoryOutput(context, 0, status);
    if (places != 2 || !its_stream) TF_SetStatus(status, TF_INTERNAL, "inputs in the wrong places");
    for (int64_t i = 0; y && i < count; ++i) {
        float value;
        invert(&value, (float*)TF_TensorData(x) + i, sizeof(value));
        value = 2 * value + *(const float*)TF_TensorData(n);
        invert((float*)TF_TensorData(y) + i, &value, sizeof(value));
    }
    if (TF_GetCode(status) != TF_OK) TF_OpKernelContext_Failure(context, status);
    TF_DeleteTensor(x);
    TF_DeleteTensor(n);
    TF_DeleteTensor(y);
    TF_DeleteStatus(status);
}

EXPORT void TF_InitKernel(void) {
    TF_Status* status = TF_NewStatus();
    TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder("CapiOnDevice");
    TF_OpDefinitionBuilderAddInput(op, "x: float");
    TF_OpDefinitionBuilderAddInput(op, "n: float");
    TF_OpDefinitionBuilderAddOutput(op, "y: float");
    TF_OpDefinitionBuilderSetShapeInferenceFunction(op, shape_of_input);
    TF_RegisterOpDefinition(op, status);
    TF_KernelBuilder* kernel = TF_NewKernelBuilder("CapiOnDevice", "CAPI_TESTS", NULL, compute, NULL);
    TF_KernelBuilder_HostMemory(kernel, "n");
    TF_RegisterKernelBuilder("CapiOnDevice", kernel, status);
    TF_DeleteStatus(status);
}
