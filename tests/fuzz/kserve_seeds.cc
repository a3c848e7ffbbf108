#include "tests/fuzz/kserve_seeds.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"

namespace sfmamba {
namespace {

inference::ModelInferRequest Infer(const std::string& datatype,
                                   const std::vector<int64_t>& shape) {
  inference::ModelInferRequest request;
  request.set_model_name("everyday");
  (*request.mutable_parameters())["timeout"].set_int64_param(1);
  auto* input = request.add_inputs();
  input->set_name("image");
  input->set_datatype(datatype);
  for (const int64_t side : shape) input->add_shape(side);
  auto* output = request.add_outputs();
  output->set_name("logits");
  (*output->mutable_parameters())["classification"].set_int64_param(2);
  return request;
}

void AddInferRequests(const Corpus& corpus) {
  const auto add = [&](const std::string& name,
                       const inference::ModelInferRequest& request) {
    // The numbers divide the message into three slices.
    corpus.Add("kserve", name,
               Byte(2) + Byte(80) + Byte(160) + request.SerializeAsString());
  };
  const std::string files("\3\0\0\0abc\1\0\0\0d", 12);
  inference::ModelInferRequest request = Infer("BYTES", {2, 1});
  request.add_raw_input_contents(files);
  add("raw_files", request);
  request = Infer("FP16", {2, 3, 1, 2});
  request.add_raw_input_contents(std::string(24, 'x'));
  add("raw_numbers", request);
  request = Infer("BYTES", {2});
  for (const char* file : {"abc", "d"}) {
    request.mutable_inputs(0)->mutable_contents()->add_bytes_contents(file);
  }
  add("typed_files", request);
  request = Infer("FP32", {1, 3, 1, 2});
  for (int i = 0; i < 6; ++i) {
    request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(i);
  }
  add("typed_numbers", request);
  request = Infer("UINT8", {1, 3, 2, 1});
  for (int i = 0; i < 6; ++i) {
    request.mutable_inputs(0)->mutable_contents()->add_uint_contents(40 * i);
  }
  add("typed_pixels", request);
}

// Adds seeds for REST. Each has a length for the JSON and a body.
void AddRestBodies(const Corpus& corpus) {
  const auto add = [&](const std::string& name, const std::string& json,
                       const std::string& binary = "") {
    const std::string length = absl::StrCat(json.size());
    corpus.Add("kserve_rest", name,
               binary.empty()
                   ? Byte(0) + Byte(0) + json
                   : Byte(1) + Byte(length.size()) + length + json + binary);
  };
  add("numbers", R"({"id": "a", "parameters": {"priority": 1, "x": -0.5},
      "inputs": [{"name": "image", "datatype": "FP32", "shape": [1, 3, 1, 1],
      "data": [[[[1]], [[2.5e1]], [[-3]]]]}]})");
  add("pixels", R"({"inputs": [{"data": [0, 255, 7], "name": "image",
      "datatype": "UINT8", "shape": [1, 3, 1, 1]}],
      "outputs": [{"name": "logits", "parameters":
      {"classification": 2, "binary_data": false}}]})");
  add("files", R"({"inputs": [{"name": "image", "datatype": "BYTES",
      "shape": [2], "data": ["h\u00e9", {"b64": "AP/+"}]}]})");
  add("binary", R"({"parameters": {"binary_data_output": true},
      "inputs": [{"name": "image", "datatype": "BYTES", "shape": [1, 1],
      "parameters": {"binary_data_size": 7}}]})",
      std::string("\3\0\0\0abc", 7));
  corpus.Add("kserve_rest", "picture", Byte(1) + Byte(1) + "0picture");
}

}  // namespace

void AddKserveSeeds(const Corpus& corpus) {
  AddInferRequests(corpus);
  AddRestBodies(corpus);
}

}  // namespace sfmamba
