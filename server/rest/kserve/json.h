#ifndef SFMAMBA_SERVER_REST_KSERVE_JSON_H_
#define SFMAMBA_SERVER_REST_KSERVE_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"

namespace sfmamba::rest {

// The elements of an input.
struct InputData {
  // How many bytes follow the JSON, by the parameter `binary_data_size`.
  std::optional<int64_t> binary_bytes;
  // The elements of `data` in the JSON, as raw_input_contents has them.
  std::optional<std::string> raw;
};

// Whether each output of a response comes as binary data or in the JSON, by the
// parameters `binary_data` and `binary_data_output`.
struct OutputForms {
  std::vector<std::optional<bool>> binary;  // One for each requested output.
  bool default_binary = false;              // For outputs without a parameter.

  bool IsBinary(int output) const;
  // Whether an output may come in the JSON.
  bool AnyJson() const;
};

// The JSON of a request to infer.
struct InferJson {
  // The message without the elements, without the parameters that only REST
  // has, and without the model's name and version, which the path has.
  inference::ModelInferRequest message;
  std::vector<InputData> inputs;  // One for each input of the message.
  OutputForms outputs;
};

// Reads the JSON of a request. The `data` of BYTES are strings, which stand for
// their UTF-8, or objects {"b64": "<base64>"}. The `data` of FP32 and UINT8 are
// numbers. Nested arrays are flattened in their order. At most `max_raw_bytes`
// of elements are taken. Unknown keys of an object are ignored, and no key may
// occur twice. A string has at most 16 MiB, and there are at most 4096 values
// beside the elements.
//
// Returns INVALID_ARGUMENT: MALFORMED_MESSAGE if the text is no JSON, or
// INVALID_FIELD, naming the field. FindImages() checks what a gRPC message
// could also have. Takes memory in proportion to the JSON and never recurses.
absl::StatusOr<InferJson> ReadInferJson(absl::string_view json,
                                        int64_t max_raw_bytes);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_JSON_H_
