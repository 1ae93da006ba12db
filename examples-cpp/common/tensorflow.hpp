// A thin C++17 layer over the C API, as much as the examples need: handles that delete themselves, statuses as
// exceptions.
#ifndef EXAMPLES_CPP_COMMON_TENSORFLOW_HPP_
#define EXAMPLES_CPP_COMMON_TENSORFLOW_HPP_

#include <tensorflow/c/c_api.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace example {

// What a failed call reports.
class Error : public std::runtime_error {
 public:
    Error(TF_Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
    TF_Code code() const { return code_; }

 private:
    TF_Code code_;
};

// A TF_Status that throws: pass `status.get()` to a call, then `status.check()`.
class Status {
 public:
    TF_Status* get() { return status_.get(); }
    void check() const {
        TF_Code code = TF_GetCode(status_.get());
        if (code != TF_OK) throw Error(code, TF_Message(status_.get()));
    }

 private:
    std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status_{TF_NewStatus(), TF_DeleteStatus};
};

// A dense tensor of floats.
class Tensor {
 public:
    // Takes ownership.
    explicit Tensor(TF_Tensor* tensor) : tensor_(tensor, TF_DeleteTensor) {
        if (!tensor) throw std::bad_alloc();
    }
    // Copies `values` into a new tensor of that shape.
    Tensor(const std::vector<std::int64_t>& shape, const std::vector<float>& values)
        : Tensor(TF_AllocateTensor(TF_FLOAT, shape.data(), static_cast<int>(shape.size()),
                                   values.size() * sizeof(float))) {
        std::memcpy(TF_TensorData(get()), values.data(), values.size() * sizeof(float));
    }

    TF_Tensor* get() const { return tensor_.get(); }
    std::int64_t dim(int i) const { return TF_Dim(get(), i); }
    std::int64_t size() const { return TF_TensorElementCount(get()); }
    const float* begin() const { return static_cast<const float*>(TF_TensorData(get())); }
    const float* end() const { return begin() + size(); }

 private:
    std::unique_ptr<TF_Tensor, decltype(&TF_DeleteTensor)> tensor_;
};

// A graph imported from a file.
class Graph {
 public:
    explicit Graph(const std::string& path) : graph_(TF_NewGraph(), TF_DeleteGraph) {
        std::ifstream file(path, std::ios::binary);
        if (!file) throw std::runtime_error("cannot open " + path);
        const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        std::unique_ptr<TF_Buffer, decltype(&TF_DeleteBuffer)> buffer(
            TF_NewBufferFromString(bytes.data(), bytes.size()), TF_DeleteBuffer);
        std::unique_ptr<TF_ImportGraphDefOptions, decltype(&TF_DeleteImportGraphDefOptions)> options(
            TF_NewImportGraphDefOptions(), TF_DeleteImportGraphDefOptions);
        Status status;
        TF_GraphImportGraphDef(graph_.get(), buffer.get(), options.get(), status.get());
        status.check();
    }

    TF_Graph* get() const { return graph_.get(); }
    TF_Output output(const std::string& operation, int index = 0) const {
        TF_Operation* found = TF_GraphOperationByName(get(), operation.c_str());
        if (!found) throw std::runtime_error("the graph has no operation '" + operation + "'");
        return {found, index};
    }

 private:
    std::unique_ptr<TF_Graph, decltype(&TF_DeleteGraph)> graph_;
};

// A session on a graph, which may outlive it. Safe to use from several threads.
class Session {
 public:
    explicit Session(const Graph& graph) {
        std::unique_ptr<TF_SessionOptions, decltype(&TF_DeleteSessionOptions)> options(TF_NewSessionOptions(),
                                                                                       TF_DeleteSessionOptions);
        Status status;
        session_ = TF_NewSession(graph.get(), options.get(), status.get());
        status.check();
    }
    Session(Session&& other) noexcept : session_(std::exchange(other.session_, nullptr)) {}
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    Session& operator=(Session&&) = delete;
    ~Session() {
        Status status;
        if (session_) TF_DeleteSession(session_, status.get());
    }

    // Feeds `input`, returns what `output` becomes.
    Tensor run(TF_Output input, const Tensor& value, TF_Output output) const {
        TF_Tensor* feed = value.get();
        TF_Tensor* result = nullptr;
        Status status;
        TF_SessionRun(session_, nullptr, &input, &feed, 1, &output, &result, 1, nullptr, 0, nullptr, status.get());
        status.check();
        return Tensor(result);
    }

 private:
    TF_Session* session_ = nullptr;
};

}  // namespace example

#endif  // EXAMPLES_CPP_COMMON_TENSORFLOW_HPP_
