/* Contexts that are the only task of a cluster: names of devices, what stays and what goes, the coordination service.
 * The port is 0 everywhere, which lets the reference choose one. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_experimental.h>

#include "harness/build.h"
#include "harness/eager.h"
#include "harness/harness.h"
#include "harness/in_session.h"

/* ServerDefs as text. */
#define TASK(job, number) \
    "cluster{job{name:\"" job "\" tasks{key:" #number " value:\"localhost:0\"}}} job_name:\"" job "\" task_index:" #number " "
#define GRPC "protocol:\"grpc\" "
#define WORKER TASK("worker", 0) GRPC
#define CONFIG(config) "default_session_config{" config "}"
#define COORDINATION(settings) \
    CONFIG("experimental{coordination_config{service_type:\"standalone\" " settings "}}")

typedef void (*Join)(TFE_Context*, const void*, size_t, TF_Status*);

static void set_server(TFE_Context* ctx, const void* proto, size_t length, TF_Status* result) {
    TFE_ContextSetServerDef(ctx, 0, proto, length, result);
}
static void set_with_timeout(TFE_Context* ctx, const void* proto, size_t length, TF_Status* result) {
    TFE_ContextSetServerDefWithTimeout(ctx, 0, proto, length, 2000, result, false);
}
static void set_with_retries(TFE_Context* ctx, const void* proto, size_t length, TF_Status* result) {
    TFE_ContextSetServerDefWithTimeoutAndRetries(ctx, 0, proto, length, 2000, 2, result, true);
}
static void update(TFE_Context* ctx, const void* proto, size_t length, TF_Status* result) {
    TFE_ContextUpdateServerDef(ctx, 0, proto, length, result);
}
static void update_with_timeout(TFE_Context* ctx, const void* proto, size_t length, TF_Status* result) {
    TFE_ContextUpdateServerDefWithTimeout(ctx, 0, proto, length, 2000, result);
}
static void local_only(TFE_Context* ctx, const void* proto, size_t length, TF_Status* result) {
    TFE_InitializeLocalOnlyContext(ctx, 0, proto, length, result);
}

static void join(const char* what, Join function, const char* text) {
    TF_Buffer* server = TFE_GetServerDef(text, fresh(status));
    if (!server) {
        print_status("text", status);
        return;
    }
    function(context, server->data, server->length, fresh(status));
    print_code(what, status);
    TF_DeleteBuffer(server);
}

static void print_devices(void) {
    TF_DeviceList* devices = TFE_ContextListDevices(context, fresh(status));
    for (int i = 0; i < TF_DeviceListCount(devices); ++i)
        printf("  %s %s\n", TF_DeviceListName(devices, i, status), TF_DeviceListType(devices, i, status));
    TF_DeleteDeviceList(devices);
    TF_Buffer* space = TF_NewBuffer();
    TFE_HostAddressSpace(context, space);
    printf("  address space: ");
    print_bytes(space->data, space->length);
    printf("\n  in a cluster: %d\n", TFE_GetContextId(context) != 0);
    TF_DeleteBuffer(space);
}

static void print_place(const char* what, TFE_TensorHandle* handle) {
    if (!handle) return;
    printf("%s: on %s, backed by %s\n", what, TFE_TensorHandleDeviceName(handle, fresh(status)),
           TFE_TensorHandleBackingDeviceName(handle, status));
}

/* An addition on a device: where its result is. */
static void add_on(const char* device) {
    TFE_TensorHandle* one = vector(3);
    TFE_Op* add = new_op("AddV2", one, one);
    TFE_OpSetDevice(add, device, status);
    if (TF_GetCode(status) != TF_OK) print_code("device", status);
    TFE_TensorHandle* sum = NULL;
    int count = 1;
    TFE_Execute(add, &sum, &count, fresh(status));
    print_code(device, status);
    TFE_DeleteOp(add);
    print_place("input", one);
    print_place("sum", sum);
    if (sum) print_handle("sum", sum);
    TFE_DeleteTensorHandle(one);
    if (sum) TFE_DeleteTensorHandle(sum);
}

static TFE_TensorHandle* variable(void) {
    TFE_Op* op = new_op("VarHandleOp", NULL, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_OpSetAttrShape(op, "shape", NULL, 0, status);
    TFE_OpSetAttrString(op, "shared_name", "v", 1);
    return execute_quietly("handle", op);
}

static void read_variable(const char* what, TFE_TensorHandle* handle) {
    if (!handle) return;
    TFE_Op* op = new_op("ReadVariableOp", handle, NULL);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    TFE_TensorHandle* value = NULL;
    int count = 1;
    TFE_Execute(op, &value, &count, fresh(status));
    print_status(what, status);
    TFE_DeleteOp(op);
    print_place(what, value);
    if (value) print_handle(what, value);
    if (value) TFE_DeleteTensorHandle(value);
}

static void read_by_name(const char* what) {
    TFE_TensorHandle* handle = variable();
    print_place(what, handle);
    read_variable(what, handle);
    if (handle) TFE_DeleteTensorHandle(handle);
}

static TFE_TensorHandle* assigned(float value) {
    TFE_TensorHandle *handle = variable(), *given = number(value);
    TFE_Op* op = new_op("AssignVariableOp", handle, given);
    TFE_OpSetAttrType(op, "dtype", TF_FLOAT);
    execute_quietly("assign", op);
    TFE_DeleteTensorHandle(given);
    return handle;
}

static void print_alive(const char* task) {
    bool alive = TFE_ContextCheckAlive(context, task, fresh(status));
    printf("%s: %d\n", task, alive);
    print_status("alive", status);
}

static void one_task(void) {
    begin_eager(false);
    print_devices();
    TFE_TensorHandle* old = assigned(1);
    join("set", set_server, WORKER);
    print_devices();
    read_by_name("variable of before");
    read_variable("handle of before", old);
    TFE_TensorHandle* new = assigned(3);
    read_by_name("variable of now");
    add_on("");
    add_on("/device:CPU:0");
    add_on("/job:worker/task:0");
    add_on("/job:worker/replica:0/task:0/device:CPU:0");
    add_on("/job:localhost/replica:0/task:0/device:CPU:0");
    add_on("/job:worker/replica:0/task:1/device:CPU:0");
    print_alive("/job:worker/replica:0/task:0");
    print_alive("/job:worker/replica:0/task:1");
    print_alive("");
    join("update", update, WORKER);
    join("update with timeout", update_with_timeout, WORKER);
    print_devices();
    read_by_name("variable after updates");
    join("set again", set_with_timeout, WORKER);
    print_devices();
    read_by_name("variable after setting again");
    read_variable("handle after setting again", new);
    join("another job", set_with_retries, TASK("other", 3) GRPC);
    print_devices();
    read_by_name("variable in another job");
    print_alive("/job:worker/replica:0/task:0");
    print_alive("/job:other/replica:0/task:3");
    TFE_DeleteTensorHandle(old);
    TFE_DeleteTensorHandle(new);
    end_eager();
}

static void several_devices(void) {
    begin_eager(false);
    join("set", set_server, WORKER CONFIG("device_count{key:\"CPU\" value:3}"));
    print_devices();
    add_on("/device:CPU:2");
    add_on("/job:worker/replica:0/task:0/device:CPU:1");
    add_on("/device:CPU:3");
    const char* names[] = {"/job:worker/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:CPU:1",
                           "/job:localhost/replica:0/task:0/device:CPU:0", "CPU:0", "CPU:2"};
    TFE_TensorHandle* two = vector(2);
    for (int i = 0; i < N_ELEMENTS(names); ++i) {
        TFE_TensorHandle* copy = TFE_TensorHandleCopyToDevice(two, context, names[i], fresh(status));
        print_status(names[i], status);
        print_place("copy", copy);
        if (copy) TFE_DeleteTensorHandle(copy);
    }
    TFE_DeleteTensorHandle(two);
    TFE_DeleteTensorHandle(assigned(2));
    join("other devices", set_server, WORKER CONFIG("device_count{key:\"CPU\" value:2}"));
    print_devices();
    read_by_name("variable");
    end_eager();
}

/* Functions stay; their variables are those of the task. */
static void functions(void) {
    begin_eager(false);
    TF_Graph* body = TF_NewGraph();
    TF_OperationDescription* description = TF_NewOperation(body, "VarHandleOp", "variable");
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_SetAttrShape(description, "shape", NULL, 0);
    TF_SetAttrString(description, "shared_name", "v", 1);
    TF_Output handle = finish(description);
    description = TF_NewOperation(body, "ReadVariableOp", "read");
    TF_AddInput(description, handle);
    TF_SetAttrType(description, "dtype", TF_FLOAT);
    TF_Output value = finish(description);
    TF_Function* function = TF_GraphToFunction(body, "reader", 0, -1, NULL, 0, NULL, 1, &value, NULL, NULL, NULL, fresh(status));
    print_status("function", status);
    TFE_ContextAddFunction(context, function, status);
    TFE_TensorHandle* old = assigned(1);
    execute("before", new_op("reader", NULL, NULL));
    join("set", set_server, WORKER);
    printf("there: %d\n", TFE_ContextHasFunction(context, "reader"));
    TFE_TensorHandle* new = assigned(7);
    execute("after", new_op("reader", NULL, NULL));
    TFE_DeleteTensorHandle(old);
    TFE_DeleteTensorHandle(new);
    TF_DeleteFunction(function);
    TF_DeleteGraph(body);
    end_eager();
}

/* The same, of a context that executes asynchronously; random numbers go on. */
static void asynchronous(void) {
    begin_eager(true);
    TFE_TensorHandle *three = vector(3), *sum = execute_quietly("sum", new_op("AddV2", three, three));
    join("set", set_server, WORKER);
    print_handle("sum of before", sum);
    TFE_TensorHandle* product = execute_quietly("product", new_op("Mul", sum, three));
    print_place("product", product);
    print_handle("product", product);
    TFE_DeleteTensorHandle(product);
    TFE_DeleteTensorHandle(sum);
    TFE_DeleteTensorHandle(three);
    end_eager();
}

static void locally(void) {
    begin_eager(false);
    TFE_TensorHandle* old = assigned(1);
    join("local only", local_only, WORKER);
    print_devices();
    read_by_name("variable of before");
    read_variable("handle of before", old);
    TFE_DeleteTensorHandle(assigned(5));
    add_on("");
    print_alive("/job:worker/replica:0/task:0");
    join("update", update, WORKER);
    join("local only", local_only, WORKER);
    read_by_name("variable");
    TFE_DeleteTensorHandle(old);
    end_eager();
}

static void for_collectives(void) {
    begin_eager(false);
    TFE_TensorHandle* old = assigned(1);
    join("collectives", TFE_EnableCollectiveOps, WORKER);
    print_devices();
    read_variable("handle of before", old);
    TFE_DeleteTensorHandle(assigned(5));
    print_alive("/job:worker/replica:0/task:0");
    join("again", TFE_EnableCollectiveOps, WORKER);
    print_devices();
    read_by_name("variable");
    join("set", set_server, WORKER);
    print_devices();
    read_by_name("variable after set");
    TFE_DeleteTensorHandle(old);
    end_eager();
}

static void reduce(const char* what, int64_t size, TFE_TensorHandle* input) {
    TFE_Op* op = new_op("CollectiveReduce", input, NULL);
    TFE_OpSetAttrInt(op, "group_size", size);
    TFE_OpSetAttrInt(op, "group_key", 1);
    TFE_OpSetAttrInt(op, "instance_key", 1);
    TFE_OpSetAttrString(op, "merge_op", "Add", 3);
    TFE_OpSetAttrString(op, "final_op", "Div", 3);
    TFE_OpSetAttrIntList(op, "subdiv_offsets", NULL, 0);
    TFE_TensorHandle* output = NULL;
    int count = 1;
    TFE_Execute(op, &output, &count, fresh(status));
    print_code(what, status);
    TFE_DeleteOp(op);
    print_place(what, output);
    if (output) print_handle(what, output);
    if (output) TFE_DeleteTensorHandle(output);
}

static void groups_of_one(void) {
    begin_eager(false);
    TFE_TensorHandle* input = vector(3);
    reduce("without a cluster", 1, input);
    join("collectives", TFE_EnableCollectiveOps, WORKER);
    reduce("reduced", 1, input);
    reduce("once more", 1, input);
    reduce("of none", 0, input);
    TFE_DeleteTensorHandle(input);
    end_eager();
}

static void wrong_servers(void) {
    const char* texts[] = {
        "", "job_name:\"worker\"", TASK("worker", 0), TASK("worker", 0) "protocol:\"xyz\"", GRPC, "job_name:\"worker\" " GRPC,
        "cluster{job{name:\"worker\" tasks{key:0 value:\"localhost:0\"}}} job_name:\"worker\" task_index:1 " GRPC,
        "cluster{job{name:\"worker\" tasks{key:0 value:\"localhost:0\"}}} job_name:\"other\" " GRPC,
        "cluster{job{name:\"worker\" tasks{key:0 value:\"\"}}} job_name:\"worker\" " GRPC,
        "cluster{job{name:\"worker\" tasks{key:0 value:\"localhost\"}}} job_name:\"worker\" " GRPC,
        "cluster{job{name:\"worker\" tasks{key:0 value:\"localhost:x\"}}} job_name:\"worker\" " GRPC,
        WORKER "replica:2",
        "cluster{job{name:\"w\" tasks{key:0 value:\"localhost:0\"}} job{name:\"w\"}} job_name:\"w\" " GRPC};
    begin_eager(false);
    for (int i = 0; i < N_ELEMENTS(texts); ++i) {
        printf("%d\n", i);
        join("set", set_server, texts[i]);
        join("local only", local_only, texts[i]);
        join("collectives", TFE_EnableCollectiveOps, texts[i]);
    }
    TFE_ContextSetServerDef(context, 0, "\xff\xff", 2, fresh(status));
    print_code("garbage set", status);
    TFE_ContextUpdateServerDef(context, 0, "\xff\xff", 2, fresh(status));
    print_code("garbage update", status);
    TFE_InitializeLocalOnlyContext(context, 0, "\xff\xff", 2, fresh(status));
    print_code("garbage local only", status);
    TFE_EnableCollectiveOps(context, "\xff\xff", 2, fresh(status));
    print_code("garbage collectives", status);
    print_devices();
    add_on("");
    join("empty job beside", set_server,
         "cluster{job{name:\"w\" tasks{key:0 value:\"localhost:0\"}} job{name:\"empty\"}} job_name:\"w\" " GRPC);
    print_devices();
    end_eager();
}

static void insert(const char* key, const char* value) {
    TFE_InsertConfigKeyValue(context, key, value, fresh(status));
    printf("'%s' is '%s': ", key, value);
    print_code("insert", status);
}

static void get(const char* key, int64_t timeout) {
    TF_Buffer* value = TF_NewBuffer();
    TFE_GetConfigKeyValue(context, key, timeout, value, fresh(status));
    print_status(key, status);
    if (TF_GetCode(status) == TF_OK) {
        print_bytes(value->data, value->length);
        printf("\n");
    }
    TF_DeleteBuffer(value);
}

static void delete(const char* key) {
    TFE_DeleteConfigKeyValue(context, key, fresh(status));
    printf("'%s' ", key);
    print_status("delete", status);
}

static void wait_at(const char* barrier, int64_t timeout) {
    TFE_WaitAtBarrier(context, barrier, timeout, fresh(status));
    printf("'%s' ", barrier);
    print_status("barrier", status);
}

static void report(int code, const char* message) {
    TFE_ReportErrorToCluster(context, code, message, fresh(status));
    print_status("report", status);
}

static void use_all(void) {
    insert("a", "1");
    get("a", 100);
    delete("a");
    wait_at("a", 100);
    report(TF_ABORTED, "a");
}

static void no_coordination(void) {
    begin_eager(false);
    use_all();
    join("set", set_server, WORKER);
    use_all();
    join("disabled", set_server, WORKER COORDINATION("force_disable:true"));
    use_all();
    join("without type", set_server, WORKER CONFIG("experimental{coordination_config{force_disable:false}}"));
    use_all();
    end_eager();
}

static void values(void) {
    begin_eager(false);
    join("set", set_server, WORKER COORDINATION(""));
    get("a", 200);
    const char* inserted[][2] = {{"a", "1"},     {"a", "2"},  {"/a/", "3"}, {"a/b", "3"}, {"a/c/d", "4"},
                                 {"ab", "5"},    {"", "6"},   {"/x/", "7"}, {"q", ""},    {"d/1", "8"},
                                 {"d//2/", "9"}, {"//", "10"}};
    for (int i = 0; i < N_ELEMENTS(inserted); ++i) insert(inserted[i][0], inserted[i][1]);
    const char* keys[] = {"a", "a/", "/a", "a//b", "a/c", "a/c/d", "", "/", "x", "q", "d/1", "d/2"};
    for (int i = 0; i < N_ELEMENTS(keys); ++i) get(keys[i], 50);
    get("a", 0);
    get("a", -1);
    const char* deleted[] = {"a", "none", "d/", ""};
    for (int i = 0; i < N_ELEMENTS(deleted); ++i) delete (deleted[i]);
    for (int i = 0; i < N_ELEMENTS(keys); ++i) get(keys[i], 20);
    get("ab", 20);
    insert("a", "again");
    get("a", 20);
    end_eager();
}

static void* insert_later(void* unused) {
    (void)unused;
    double until = seconds() + 0.3;
    while (seconds() < until) sched_yield();
    TF_Status* result = TF_NewStatus();
    TFE_InsertConfigKeyValue(context, "late", "value", result);
    TF_DeleteStatus(result);
    return NULL;
}

static void waiting_for_a_value(void) {
    begin_eager(false);
    join("set", set_server, WORKER COORDINATION(""));
    for (int turn = 0; turn < 2; ++turn) {
        pthread_t thread;
        pthread_create(&thread, NULL, insert_later, NULL);
        get("late", turn == 0 ? 0 : 20000);
        pthread_join(thread, NULL);
        delete("late");
    }
    end_eager();
}

static void barriers_and_errors(void) {
    begin_eager(false);
    join("set", set_server, WORKER COORDINATION("service_leader:\"/job:worker/replica:0/task:0\""));
    wait_at("first", 500);
    wait_at("first", 1000);
    wait_at("", 500);
    wait_at("second", 0);
    wait_at("third", -1);
    insert("a", "1");
    report(TF_INVALID_ARGUMENT, "message");
    report(TF_INVALID_ARGUMENT, "message");
    wait_at("fourth", 500);
    get("a", 100);
    insert("b", "2");
    get("b", 100);
    add_on("");
    end_eager();
    int codes[] = {TF_OK, 99};
    for (int i = 0; i < 2; ++i) {
        begin_eager(false);
        join("set", set_server, WORKER COORDINATION(""));
        report(codes[i], "message");
        wait_at("barrier", 100);
        end_eager();
    }
}

static void services_come_and_go(void) {
    begin_eager(false);
    join("set", set_server, WORKER COORDINATION("coordinated_job_list{name:\"worker\" num_tasks:1}"));
    insert("a", "1");
    join("update", update, WORKER COORDINATION(""));
    get("a", 50);
    join("set again", set_server, WORKER COORDINATION(""));
    get("a", 50);
    join("collectives", TFE_EnableCollectiveOps, WORKER);
    insert("a", "2");
    get("a", 50);
    join("without", set_server, WORKER);
    get("a", 50);
    join("nothing", TFE_EnableCollectiveOps, "");
    join("local only", local_only, WORKER COORDINATION(""));
    insert("a", "3");
    get("a", 50);
    end_eager();
}

static const Case CASES[] = {
    {"one_task", one_task}, {"several_devices", several_devices}, {"functions", functions}, {"asynchronous", asynchronous},
    {"locally", locally}, {"for_collectives", for_collectives}, {"groups_of_one", groups_of_one}, {"wrong_servers", wrong_servers},
    {"no_coordination", no_coordination}, {"values", values}, {"waiting_for_a_value", waiting_for_a_value},
    {"barriers_and_errors", barriers_and_errors}, {"services_come_and_go", services_come_and_go}};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
