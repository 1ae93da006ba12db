/* Collective ops of the devices of one context: each call is made on a thread of its own, and they meet. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/eager/c_api_experimental.h>

#include "harness/build.h"
#include "harness/eager.h"
#include "harness/harness.h"

enum { DEVICES = 3 };

/* A call that a device makes. */
typedef struct {
    const char* op;
    const char* merge;
    const char* last;
    int64_t rows, columns;
    const float* values;
    int group, instance, size;
    float timeout;
    int device;
    /* What came of it. */
    TFE_TensorHandle* output;
    TF_Status* result;
} Member;

static TFE_TensorHandle* input_of(const Member* member, TF_Status* result) {
    const int64_t dims[] = {member->rows, member->columns};
    int rank = member->columns ? 2 : 1;
    size_t count = (size_t)(member->rows * (member->columns ? member->columns : 1));
    TF_Tensor* tensor = TF_AllocateTensor(TF_FLOAT, dims, rank, count * sizeof(float));
    memcpy(TF_TensorData(tensor), member->values, count * sizeof(float));
    TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, result);
    TF_DeleteTensor(tensor);
    return handle;
}

static void add_number(TFE_Op* op, int number, TF_Status* result) {
    TF_Tensor* tensor = TF_AllocateTensor(TF_INT32, NULL, 0, sizeof(int32_t));
    *(int32_t*)TF_TensorData(tensor) = number;
    TFE_TensorHandle* handle = TFE_NewTensorHandle(tensor, result);
    TFE_OpAddInput(op, handle, result);
    TFE_DeleteTensorHandle(handle);
    TF_DeleteTensor(tensor);
}

static void* call(void* argument) {
    Member* member = argument;
    TF_Status* result = member->result = TF_NewStatus();
    TFE_Op* op = TFE_NewOp(context, member->op, result);
    char device[64];
    snprintf(device, sizeof device, "/job:localhost/replica:0/task:0/device:CPU:%d", member->device);
    TFE_OpSetDevice(op, device, result);
    bool takes = strstr(member->op, "Recv") != NULL;
    if (!takes) {
        TFE_TensorHandle* input = input_of(member, result);
        TFE_OpAddInput(op, input, result);
        TFE_DeleteTensorHandle(input);
    }
    add_number(op, member->size, result);
    add_number(op, member->group, result);
    add_number(op, member->instance, result);
    if (takes) {
        const int64_t length = 1;
        TF_Tensor* shape = TF_AllocateTensor(TF_INT32, &length, 1, sizeof(int32_t));
        *(int32_t*)TF_TensorData(shape) = (int32_t)member->rows;
        TFE_TensorHandle* handle = TFE_NewTensorHandle(shape, result);
        TFE_OpAddInput(op, handle, result);
        TFE_DeleteTensorHandle(handle);
        TF_DeleteTensor(shape);
        TFE_OpSetAttrType(op, "T", TF_FLOAT);
    }
    if (member->merge) {
        TFE_OpSetAttrString(op, "merge_op", member->merge, strlen(member->merge));
        TFE_OpSetAttrString(op, "final_op", member->last, strlen(member->last));
    }
    if (!strstr(member->op, "Bcast")) TFE_OpSetAttrInt(op, "Nordering_token", 0);
    TFE_OpSetAttrFloat(op, "timeout_seconds", member->timeout);
    int count = 1;
    TFE_Execute(op, &member->output, &count, result);
    TFE_DeleteOp(op);
    return NULL;
}

/* All calls at once; prints what each gets. */
static void meet(const char* what, Member* members, int count) {
    pthread_t threads[DEVICES];
    for (int i = 0; i < count; ++i) {
        members[i].device = i;
        members[i].output = NULL;
        if (!members[i].size) members[i].size = count;
        pthread_create(&threads[i], NULL, call, &members[i]);
    }
    for (int i = 0; i < count; ++i) {
        pthread_join(threads[i], NULL);
        print_code(what, members[i].result);
        if (members[i].output) {
            print_handle(what, members[i].output);
            TFE_DeleteTensorHandle(members[i].output);
        }
        TF_DeleteStatus(members[i].result);
    }
}

static void begin_devices(void) {
    begin_eager(false);
    TFE_SetLogicalCpuDevices(context, DEVICES, "/job:localhost/replica:0/task:0", fresh(status));
    print_code("devices", status);
}

static const float ONE[] = {1, 2, 3, 4}, TWO[] = {10, 20, 30, 40}, THREE[] = {-5, 0, 50, 7};

#define REDUCE(merge_op, final_op, length, data, key) \
    {.op = "CollectiveReduceV2", .merge = merge_op, .last = final_op, .rows = length, .values = data, .group = key, .instance = 1}
#define PLAIN(name, n_rows, n_columns, data, key) \
    {.op = name, .rows = n_rows, .columns = n_columns, .values = data, .group = key, .instance = 2}

static void reduces(void) {
    begin_devices();
    static const char* const merges[] = {"Add", "Mul", "Min", "Max"};
    for (int i = 0; i < 4; ++i) {
        for (int round = 0; round < 2; ++round) {
            Member plain[] = {REDUCE(merges[i], "Id", 4, ONE, 1), REDUCE(merges[i], "Id", 4, TWO, 1)};
            meet(merges[i], plain, 2);
            Member divided[] = {REDUCE(merges[i], "Div", 4, ONE, 2), REDUCE(merges[i], "Div", 4, TWO, 2),
                                REDUCE(merges[i], "Div", 4, THREE, 2)};
            meet("divided", divided, 3);
        }
    }
    end_eager();
}

static void reduces_nothing(void) {
    begin_devices();
    Member nothing[] = {REDUCE("Add", "Div", 0, ONE, 3), REDUCE("Add", "Div", 0, TWO, 3)};
    meet("nothing", nothing, 2);
    end_eager();
}

static void moves(void) {
    begin_devices();
    Member gathered[] = {PLAIN("CollectiveGatherV2", 2, 2, ONE, 1), PLAIN("CollectiveGatherV2", 2, 2, TWO, 1),
                         PLAIN("CollectiveGatherV2", 2, 2, THREE, 1)};
    meet("gathered", gathered, 3);
    Member rows[] = {PLAIN("CollectiveGatherV2", 3, 0, ONE, 2), PLAIN("CollectiveGatherV2", 3, 0, TWO, 2)};
    meet("gathered", rows, 2);
    Member sent[] = {PLAIN("CollectiveBcastRecvV2", 4, 0, NULL, 3), PLAIN("CollectiveBcastSendV2", 4, 0, ONE, 3),
                     PLAIN("CollectiveBcastRecvV2", 4, 0, NULL, 3)};
    meet("sent", sent, 3);
    Member exchanged[] = {PLAIN("CollectiveAllToAllV2", 2, 2, ONE, 4), PLAIN("CollectiveAllToAllV2", 2, 2, TWO, 4)};
    meet("exchanged", exchanged, 2);
    end_eager();
}

/* What does not fit ends all that come later, too; each in a context of its own. */
static void misfits(void) {
    Member cases[][2] = {
        {REDUCE("Add", "Id", 3, ONE, 1), REDUCE("Add", "Id", 4, TWO, 1)},
        {REDUCE("Add", "Id", 4, ONE, 1), PLAIN("CollectiveGatherV2", 4, 0, ONE, 1)},
        {PLAIN("CollectiveBcastRecvV2", 4, 0, NULL, 1), PLAIN("CollectiveBcastRecvV2", 4, 0, NULL, 1)},
        {PLAIN("CollectiveBcastSendV2", 4, 0, ONE, 1), PLAIN("CollectiveBcastSendV2", 4, 0, ONE, 1)},
        {PLAIN("CollectiveBcastSendV2", 4, 0, ONE, 1), PLAIN("CollectiveBcastRecvV2", 3, 0, NULL, 1)},
        {REDUCE("Add", "Id", 4, ONE, 1), REDUCE("Add", "Id", 4, TWO, 1)},
    };
    cases[1][1].instance = 1;
    cases[5][1].size = 3;
    for (int i = 0; i < (int)N_ELEMENTS(cases); ++i) {
        begin_devices();
        meet("do not fit", cases[i], 2);
        Member later[] = {REDUCE("Add", "Id", 4, ONE, 7), REDUCE("Add", "Id", 4, TWO, 7)};
        meet("later", later, 2);
        end_eager();
    }
}

static void times_out(void) {
    begin_devices();
    Member alone[] = {REDUCE("Add", "Id", 4, ONE, 1)};
    alone[0].size = 2;
    alone[0].timeout = 0.2f;
    meet("alone", alone, 1);
    Member later[] = {REDUCE("Add", "Id", 4, ONE, 2), REDUCE("Add", "Id", 4, TWO, 2)};
    meet("later", later, 2);
    end_eager();
}

static void* abort_later(void* argument) {
    struct timespec pause = {.tv_nsec = 200000000};
    nanosleep(&pause, NULL);
    TFE_AbortCollectiveOps(context, argument);
    return NULL;
}

static void aborted_by_ok(void) {
    begin_devices();
    TFE_AbortCollectiveOps(context, fresh(status));
    Member before[] = {REDUCE("Add", "Id", 4, ONE, 2), REDUCE("Add", "Id", 4, TWO, 2)};
    meet("after", before, 2);
    end_eager();
}

/* An end from another thread, while a call waits; the first end stays. */
static void aborted(void) {
    begin_devices();
    Member before[] = {REDUCE("Add", "Id", 4, ONE, 2), REDUCE("Add", "Id", 4, TWO, 2)};
    meet("before", before, 2);
    TF_Status* cause = TF_NewStatus();
    TF_SetStatus(cause, TF_RESOURCE_EXHAUSTED, "no more");
    pthread_t thread;
    pthread_create(&thread, NULL, abort_later, cause);
    Member waiting[] = {REDUCE("Add", "Id", 4, ONE, 1)};
    waiting[0].size = 2;
    meet("waiting", waiting, 1);
    pthread_join(thread, NULL);
    print_code("the cause stays", cause);
    TF_SetStatus(cause, TF_ABORTED, "again");
    TFE_AbortCollectiveOps(context, cause);
    Member later[] = {REDUCE("Add", "Id", 4, ONE, 2), REDUCE("Add", "Id", 4, TWO, 2)};
    meet("later", later, 2);
    Member single[] = {REDUCE("Add", "Id", 4, ONE, 3)};
    meet("single", single, 1);
    TF_DeleteStatus(cause);
    end_eager();
}

static const Case CASES[] = {
    {"reduces", reduces}, {"reduces_nothing", reduces_nothing}, {"moves", moves}, {"misfits", misfits},
    {"times_out", times_out}, {"aborted", aborted}, {"aborted_by_ok", aborted_by_ok}};

int main(int argc, char** argv) { return run_cases(argc, argv, CASES, N_ELEMENTS(CASES)); }
