// Many threads at once: some share one session, others have their own on the same graph; every answer must be the same
// as the one got alone, bit for bit.
//
//   concurrent_sessions PATTERNS.pb
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "../common/patterns.hpp"
#include "../common/tensorflow.hpp"

namespace {

constexpr int kThreads = 8, kRunsPerThread = 25;

struct Question {
    example::Tensor image, answer;
};

std::vector<Question> ask_alone(const example::Graph& graph, const example::Session& session) {
    std::vector<Question> questions;
    for (int kind = 0; kind < example::kKinds; ++kind) {
        std::vector<float> pixels;
        example::append_pattern(pixels, kind, 2);
        example::Tensor image({1, example::kSide, example::kSide, 3}, pixels);
        example::Tensor answer = session.run(graph.output("image"), image, graph.output("Identity"));
        questions.push_back({std::move(image), std::move(answer)});
    }
    return questions;
}

int run_all(const std::string& model) {
    const example::Graph graph(model);
    const example::Session shared(graph);
    const std::vector<Question> questions = ask_alone(graph, shared);
    std::atomic<int> different{0}, failed{0};
    auto work = [&](int number) {
        try {
            const example::Session own(graph);
            const example::Session& session = number % 2 ? own : shared;
            for (int i = 0; i < kRunsPerThread; ++i) {
                const Question& question = questions[(number + i) % questions.size()];
                const example::Tensor answer =
                    session.run(graph.output("image"), question.image, graph.output("Identity"));
                if (!std::equal(answer.begin(), answer.end(), question.answer.begin())) ++different;
            }
        } catch (const std::exception& error) {
            std::fprintf(stderr, "thread %d: %s\n", number, error.what());
            ++failed;
        }
    };
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number) threads.emplace_back(work, number);
    for (std::thread& thread : threads) thread.join();
    std::printf("%d threads, %d runs: %d answers differ, %d threads failed\n", kThreads, kThreads * kRunsPerThread,
                different.load(), failed.load());
    return different + failed;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: concurrent_sessions PATTERNS.pb\n");
        return 1;
    }
    try {
        return run_all(argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
