// Classifies pictures with a small MobileNet-style network, all in one batch.
//
//   classify PATTERNS.pb LABELS.txt
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "../common/patterns.hpp"
#include "../common/tensorflow.hpp"

namespace {

std::vector<std::string> read_lines(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

int classify(const std::string& model, const std::vector<std::string>& labels) {
    const example::Graph graph(model);
    const example::Session session(graph);
    std::vector<float> pixels;
    for (int kind = 0; kind < example::kKinds; ++kind) example::append_pattern(pixels, kind, 1);
    const example::Tensor images({example::kKinds, example::kSide, example::kSide, 3}, pixels);

    const example::Tensor probabilities = session.run(graph.output("image"), images, graph.output("Identity"));
    int wrong = 0;
    for (int kind = 0; kind < example::kKinds; ++kind) {
        const float* row = probabilities.begin() + kind * probabilities.dim(1);
        const auto best = std::max_element(row, row + probabilities.dim(1)) - row;
        std::printf("a picture of %-14s is taken for %s (%.0f %%)\n", labels.at(kind).c_str(), labels.at(best).c_str(),
                    100.0 * row[best]);
        wrong += best != kind;
    }
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: classify PATTERNS.pb LABELS.txt\n");
        return 1;
    }
    try {
        return classify(argv[1], read_lines(argv[2]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
