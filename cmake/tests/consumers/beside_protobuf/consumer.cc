// Makes a graph with libprotobuf's messages, runs it here, and reads with libprotobuf what is exported.
#include <google/protobuf/text_format.h>
#include <tensorflow/c/c_api.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "tensorflow/core/framework/graph.pb.h"

namespace {

constexpr char kGraph[] = R"(
  node { name: "x" op: "Const"
         attr { key: "dtype" value { type: DT_FLOAT } }
         attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 2 float_val: 3 } } } }
  node { name: "y" op: "Square" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
  versions { producer: 2000 }
)";

int fail(const char* what, const TF_Status* status) {
  std::printf("%s: %s\n", what, status ? TF_Message(status) : "wrong");
  return 1;
}

int run() {
  tensorflow::GraphDef def;
  if (!google::protobuf::TextFormat::ParseFromString(kGraph, &def)) return fail("text", nullptr);
  const std::string bytes = def.SerializeAsString();
  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_Buffer* buffer = TF_NewBufferFromString(bytes.data(), bytes.size());
  TF_ImportGraphDefOptions* import_options = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(graph, buffer, import_options, status);
  TF_DeleteImportGraphDefOptions(import_options);
  TF_DeleteBuffer(buffer);
  if (TF_GetCode(status) != TF_OK) return fail("import", status);

  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_NewSession(graph, options, status);
  TF_DeleteSessionOptions(options);
  TF_Output y = {TF_GraphOperationByName(graph, "y"), 0};
  TF_Tensor* result = nullptr;
  TF_SessionRun(session, nullptr, nullptr, nullptr, 0, &y, &result, 1, nullptr, 0, nullptr, status);
  if (TF_GetCode(status) != TF_OK) return fail("run", status);
  const float* values = static_cast<const float*>(TF_TensorData(result));
  if (values[0] != 4 || values[1] != 9) return fail("values", nullptr);
  TF_DeleteTensor(result);
  TF_DeleteSession(session, status);

  buffer = TF_NewBuffer();
  TF_GraphToGraphDef(graph, buffer, status);
  tensorflow::GraphDef exported;
  if (!exported.ParseFromArray(buffer->data, static_cast<int>(buffer->length))) return fail("export", nullptr);
  if (exported.node_size() != 2 || exported.node(1).op() != "Square") return fail("nodes", nullptr);
  TF_DeleteBuffer(buffer);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}

}  // namespace

int main() {
  GOOGLE_PROTOBUF_VERIFY_VERSION;
  // Twice: what either library keeps from the first time must not hurt.
  const int failed = run() + run();
  google::protobuf::ShutdownProtobufLibrary();
  return failed;
}
