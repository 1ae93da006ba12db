/* A compiled model through its C++ class: two runs agree, the client's memory serves as an argument. */
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "digits.h"

int main() {
  Digits first(2);
  if (!first.ok()) {
    std::printf("%s\n", first.message());
    return 1;
  }
  Digits digits(std::move(first));
  std::vector<float> image(Digits::arg_image_count());
  for (size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<float>(i % 17) / 16.0f;
    digits.arg_image()[i] = image[i];
  }
  if (!digits.run()) {
    std::printf("%s\n", digits.message());
    return 1;
  }
  std::vector<float> before(digits.result_probabilities(),
                            digits.result_probabilities() + Digits::result_probabilities_count());
  float sum = 0;
  for (float probability : before) {
    sum += probability;
  }
  if (!digits.set_arg_image(image.data()) || !digits.run()) {
    return 1;
  }
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] != digits.result_probabilities()[i]) {
      return 1;
    }
  }
  std::printf("%s: %d and %d\n", digits_result_name(DIGITS_RESULT_DIGIT_INDEX), digits.result_digit()[0],
              digits.result_digit()[1]);
  // Two images, probabilities that sum to one each.
  return DIGITS_NUM_RESULTS == 2 && std::fabs(sum - 2.0f) < 1e-5f ? 0 : 1;
}
