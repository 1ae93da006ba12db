// Test pictures for the pattern classifier in examples-c/data: 32x32 RGB, values in 0..1.
#ifndef EXAMPLES_CPP_COMMON_PATTERNS_HPP_
#define EXAMPLES_CPP_COMMON_PATTERNS_HPP_

#include <cstdint>
#include <vector>

namespace example {

constexpr int kSide = 32;
constexpr int kKinds = 5;  // the labels in patterns_labels.txt, in order

// Appends a picture of that kind in two colours; `variant` changes its width, position and noise.
inline void append_pattern(std::vector<float>& pixels, int kind, unsigned variant) {
    const float first[3] = {0.9f, 0.2f, 0.1f}, second[3] = {0.1f, 0.3f, 0.8f};
    const int width = 3 + static_cast<int>(variant % 3), phase = static_cast<int>(variant % 5);
    std::uint32_t noise = 1 + variant * 2654435761u;
    for (int i = 0; i < kSide; ++i) {
        for (int j = 0; j < kSide; ++j) {
            noise = noise * 1664525u + 1013904223u;
            const int row = (i + phase) / width % 2, column = (j + phase) / width % 2;
            const int di = i - 14 - phase, dj = j - 16 + phase;
            const float mix[kKinds] = {static_cast<float>(row), static_cast<float>(column),
                                       static_cast<float>(row ^ column), di * di + dj * dj < 64 ? 1.0f : 0.0f,
                                       static_cast<float>(noise >> 8) / static_cast<float>(1 << 24)};
            for (int c = 0; c < 3; ++c) pixels.push_back(first[c] * mix[kind] + second[c] * (1 - mix[kind]));
        }
    }
}

}  // namespace example

#endif  // EXAMPLES_CPP_COMMON_PATTERNS_HPP_
