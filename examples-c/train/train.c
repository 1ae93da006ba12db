/* Trains a small convolutional network from C: imports a GraphDef that holds the steps of the Adam optimizer, learns to
 * tell four kinds of stripes apart, saves a checkpoint, and restores it into a second session.
 *
 *   train GRAPH.pb CHECKPOINT_PREFIX */
#include <stdio.h>

#include "../common/example.h"

enum { SIDE = 8, BATCH = 32, KINDS = 4, STEPS = 60 };

/* A small, well-known generator (xorshift), so that every machine trains on the same images. */
static uint32_t random_state = 2463534242u;

static float uniform(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return (float)(random_state >> 8) / (float)(1 << 24);
}

/* Rows, columns, a fine and a coarse checkerboard, each with noise on it. */
static void make_batch(float images[BATCH][SIDE][SIDE], int32_t kinds[BATCH]) {
    for (int n = 0; n < BATCH; ++n) {
        int kind = kinds[n] = (int32_t)(uniform() * KINDS);
        for (int i = 0; i < SIDE; ++i) {
            for (int j = 0; j < SIDE; ++j) {
                const int pattern[KINDS] = {i % 2, j % 2, (i + j) % 2, (i / 2 + j / 2) % 2};
                images[n][i][j] = (float)pattern[kind] + 2.0f * uniform() - 1.0f;
            }
        }
    }
}

static TF_Session* new_session(TF_Graph* graph) {
    TF_Status* status = TF_NewStatus();
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Session* session = TF_NewSession(graph, options, status);
    check("session", status);
    TF_DeleteSessionOptions(options);
    TF_DeleteStatus(status);
    return session;
}

/* Runs the graph on one batch; `target` is the train operation or NULL. Returns the loss before the step. */
static float loss_of(TF_Session* session, TF_Graph* graph, float images[BATCH][SIDE][SIDE], const int32_t kinds[BATCH],
                     const TF_Operation* target) {
    TF_Output inputs[] = {find_output(graph, "x"), find_output(graph, "y")};
    TF_Output loss = find_output(graph, "loss");
    TF_Tensor* feeds[] = {new_tensor(TF_FLOAT, 4, (int64_t[]){BATCH, SIDE, SIDE, 1}, images),
                          new_tensor(TF_INT32, 1, (int64_t[]){BATCH}, kinds)};
    TF_Tensor* result = NULL;
    run(session, 2, inputs, feeds, 1, &loss, &result, target);
    float value = *(const float*)TF_TensorData(result);
    TF_DeleteTensor(result);
    TF_DeleteTensor(feeds[0]);
    TF_DeleteTensor(feeds[1]);
    return value;
}

/* Runs save/control_dependency or save/restore_all with the file prefix that save/Const stands for. */
static void checkpoint(TF_Session* session, TF_Graph* graph, const char* operation, const char* prefix) {
    TF_Output name = find_output(graph, "save/Const");
    TF_Tensor* feed = new_string_scalar(prefix);
    run(session, 1, &name, &feed, 0, NULL, NULL, find_operation(graph, operation));
    TF_StringDealloc(TF_TensorData(feed));
    TF_DeleteTensor(feed);
}

int main(int argc, char** argv) {
    if (argc != 3) fail("usage: train GRAPH.pb CHECKPOINT_PREFIX");
    TF_Graph* graph = import_graph(argv[1]);
    TF_Session* session = new_session(graph);
    run(session, 0, NULL, NULL, 0, NULL, NULL, find_operation(graph, "init"));

    float images[BATCH][SIDE][SIDE], first = 0.0f;
    int32_t kinds[BATCH];
    for (int step = 0; step < STEPS; ++step) {
        make_batch(images, kinds);
        float loss = loss_of(session, graph, images, kinds, find_operation(graph, "train"));
        if (step == 0) first = loss;
        if (step % 10 == 0) printf("step %2d: loss %.3f\n", step, loss);
    }
    float last = loss_of(session, graph, images, kinds, NULL);
    printf("after %d steps: loss %.3f\n", STEPS, last);
    checkpoint(session, graph, "save/control_dependency", argv[2]);

    TF_Session* restored = new_session(graph);
    checkpoint(restored, graph, "save/restore_all", argv[2]);
    float again = loss_of(restored, graph, images, kinds, NULL);
    printf("restored from %s: loss %.3f\n", argv[2], again);

    TF_Status* status = TF_NewStatus();
    TF_DeleteSession(session, status);
    TF_DeleteSession(restored, status);
    TF_DeleteGraph(graph);
    TF_DeleteStatus(status);
    if (last > 0.5f * first) fail("it did not learn");
    if (again != last) fail("the restored session differs");
    return 0;
}
