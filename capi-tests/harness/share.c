#include "share.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "in_session.h"

typedef struct {
    Use use;
    void* object;
    uint64_t expected;
    int differing;
} Work;

static void* repeat(void* argument) {
    Work* work = argument;
    TF_Status* result = TF_NewStatus();
    for (int i = 0; i < TURNS; ++i) work->differing += work->use(work->object, fresh(result)) != work->expected;
    TF_DeleteStatus(result);
    return NULL;
}

void share(const char* what, Use use, void* object) {
    Work work[N_THREADS];
    pthread_t threads[N_THREADS];
    uint64_t expected = use(object, fresh(status));
    print_code(what, status);
    for (int i = 0; i < N_THREADS; ++i) {
        work[i] = (Work){use, object, expected, 0};
        pthread_create(&threads[i], NULL, repeat, &work[i]);
    }
    int differing = 0;
    for (int i = 0; i < N_THREADS; ++i) {
        pthread_join(threads[i], NULL);
        differing += work[i].differing;
    }
    printf("%s: answer %s, %d of %d differ\n", what, expected ? "given" : "none", differing, N_THREADS * TURNS);
}

uint64_t hash_text(const char* text) { return text ? hash_bytes(text, strlen(text)) : 0; }

uint64_t hash_and_delete(TF_Buffer* buffer) {
    uint64_t hash = buffer && buffer->length ? hash_bytes(buffer->data, buffer->length) : 0;
    TF_DeleteBuffer(buffer);
    return hash;
}

uint64_t hash_of_tensor(TF_Tensor* tensor) {
    uint64_t hash = tensor ? hash_bytes(TF_TensorData(tensor), TF_TensorByteSize(tensor)) : 0;
    TF_DeleteTensor(tensor);
    return hash;
}
