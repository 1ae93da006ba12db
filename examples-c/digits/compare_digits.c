/* The compiled digits classifier beside a session on the SavedModel that it was made of: results must be equal, to the
 * last bits of rounding.
 *
 *   compare_digits SAVED_MODEL [WEIGHTS]     WEIGHTS for an object without weights
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/c_api.h>

#include "digits.h"

/* The model's two outputs for an image, by a session. */
static void run_session(TF_Session* session, TF_Graph* graph, const float* image, int* digit, float* probabilities) {
  TF_Status* status = TF_NewStatus();
  int64_t dims[3] = DIGITS_ARG_IMAGE_SHAPE;
  TF_Tensor* input = TF_AllocateTensor(TF_FLOAT, dims, 3, DIGITS_ARG_IMAGE_BYTES);
  memcpy(TF_TensorData(input), image, DIGITS_ARG_IMAGE_BYTES);
  TF_Output feed = {TF_GraphOperationByName(graph, "serving_default_image"), 0};
  TF_Operation* call = TF_GraphOperationByName(graph, "StatefulPartitionedCall");
  TF_Output fetches[2] = {{call, 0}, {call, 1}};
  TF_Tensor* outputs[2] = {NULL, NULL};
  TF_SessionRun(session, NULL, &feed, &input, 1, fetches, outputs, 2, NULL, 0, NULL, status);
  if (TF_GetCode(status) != TF_OK) {
    fprintf(stderr, "%s\n", TF_Message(status));
    exit(1);
  }
  memcpy(digit, TF_TensorData(outputs[0]), DIGITS_RESULT_DIGIT_BYTES);
  memcpy(probabilities, TF_TensorData(outputs[1]), DIGITS_RESULT_PROBABILITIES_BYTES);
  TF_DeleteTensor(outputs[0]);
  TF_DeleteTensor(outputs[1]);
  TF_DeleteTensor(input);
  TF_DeleteStatus(status);
}

/* The largest distance of two elements. */
static double difference(const float* a, const float* b, size_t count) {
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    double distance = fabs((double)a[i] - (double)b[i]);
    largest = distance > largest ? distance : largest;
  }
  return largest;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s SAVED_MODEL [WEIGHTS]\n", argv[0]);
    return 2;
  }
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* session_options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session =
      TF_LoadSessionFromSavedModel(session_options, NULL, argv[1], tags, 1, graph, NULL, status);
  if (TF_GetCode(status) != TF_OK) {
    fprintf(stderr, "%s\n", TF_Message(status));
    return 1;
  }
  FF_AotOptions options = {sizeof(FF_AotOptions), 2, argc > 2 ? argv[2] : NULL};
  FF_AotModel* model = digits_new(&options);
  double largest = 0;
  int wrong = 0, same_bits = 0;
  enum { RUNS = 50 };
  for (int run = 0; run < RUNS; ++run) {
    float* image = digits_arg_image(model);
    for (size_t i = 0; image != NULL && i < DIGITS_ARG_IMAGE_COUNT; ++i) {
      image[i] = (float)((i * 7919 + (size_t)run * 104729) % 17) / 16.0f;
    }
    if (digits_run(model) != 0) {
      fprintf(stderr, "%s\n", digits_message(model));
      return 1;
    }
    int digit;
    float probabilities[DIGITS_RESULT_PROBABILITIES_BYTES / sizeof(float)];
    run_session(session, graph, image, &digit, probabilities);
    const float* compiled = digits_result_probabilities(model);
    double distance = difference(compiled, probabilities, DIGITS_RESULT_PROBABILITIES_COUNT);
    largest = distance > largest ? distance : largest;
    wrong += digit != digits_result_digit(model)[0];
    same_bits += memcmp(compiled, probabilities, DIGITS_RESULT_PROBABILITIES_BYTES) == 0;
  }
  printf("%d runs: %d other digits, largest difference %g, %d with the same bits\n", RUNS, wrong, largest, same_bits);
  digits_delete(model);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(session_options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return wrong == 0 && largest < 1e-6 ? 0 : 1;
}
