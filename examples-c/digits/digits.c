/* Reads digits with a network that is part of the program: a SavedModel that `ferroflow compile` made an object of. The
 * TensorFlow library is not needed, neither here nor where the program runs.
 *
 *   digits FILE     a line per digit: the digit, then 64 pixels from 0 to 16 (examples-c/data/digits.txt)
 *
 * Prints each digit that it reads, with the probability, and how many were right.
 */
#include <stdio.h>

#include "digits.h"

/* The pixels of the next digit, from 0 to 1, and its label. 0 at the end. */
static int read_digit(FILE* file, int* label, float* pixels) {
  if (fscanf(file, "%d", label) != 1) {
    return 0;
  }
  for (size_t i = 0; i < DIGITS_ARG_IMAGE_COUNT; ++i) {
    int pixel;
    if (fscanf(file, "%d", &pixel) != 1) {
      return 0;
    }
    pixels[i] = (float)pixel / 16.0f;
  }
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  FILE* file = fopen(argv[1], "r");
  if (file == NULL) {
    perror(argv[1]);
    return 1;
  }
  FF_AotModel* model = digits_new(NULL);
  int label, right = 0, total = 0;
  while (read_digit(file, &label, digits_arg_image(model))) {
    if (digits_run(model) != 0) {
      break;
    }
    int digit = digits_result_digit(model)[0];
    printf("%d read as %d, %.4f\n", label, digit, digits_result_probabilities(model)[digit]);
    right += digit == label;
    ++total;
  }
  fclose(file);
  if (FF_AotModelCode(model) != 0) {
    fprintf(stderr, "%s\n", digits_message(model));
  }
  printf("%d of %d right; %zu fusions run as machine code\n", right, total, FF_AotModelNumFusions(model));
  int ok = total > 0 && 10 * right >= 9 * total && FF_AotModelCode(model) == 0;
  digits_delete(model);
  return ok ? 0 : 1;
}
