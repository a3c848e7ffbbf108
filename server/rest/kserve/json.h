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

// The elements of one input of an inference request. At most one of the two
// members is set.
struct InputData {
  // The size of the elements in bytes, from the parameter `binary_data_size`.
  // If set, the elements are binary data that follows the JSON.
  std::optional<int64_t> binary_bytes;
  // The elements in the format of raw_input_contents. Set if the JSON contains
  // the elements in the array `data`.
  std::optional<std::string> raw;
};

// The format of each output in the response. An output is sent as binary data
// or as JSON. The request selects the format with the parameters `binary_data`
// and `binary_data_output`.
struct OutputForms {
  // One element for each requested output. True selects binary data. An element
  // is empty if its output has no parameter `binary_data`.
  std::vector<std::optional<bool>> binary;
  // True if outputs without the parameter `binary_data` are sent as binary
  // data.
  bool default_binary = false;

  bool IsBinary(int output) const;
  // Returns true if any output is sent as JSON.
  bool AnyJson() const;
};

// The parsed JSON of an inference request.
struct InferJson {
  // The request without these parts:
  // - The elements of the inputs.
  // - The parameters that exist only in REST.
  // - The model's name and version, which are in the path.
  inference::ModelInferRequest message;
  // One element for each input of the message.
  std::vector<InputData> inputs;
  OutputForms outputs;
};

// Parses the JSON of an inference request. The `data` of a BYTES input consists
// of strings in UTF-8 or objects {"b64": "<base64>"}. The `data` of an FP32 or
// UINT8 input consists of numbers. Nested arrays are flattened in order. The
// elements may have at most `max_raw_bytes` in total. Unknown keys are ignored
// and duplicate keys are errors. A string may have at most 16 MiB. The JSON may
// have at most 4096 values besides the elements.
//
// Returns INVALID_ARGUMENT with one of these reasons:
// - MALFORMED_MESSAGE: the text is not valid JSON.
// - INVALID_FIELD, with the field: a value is wrong.
// FindImages() later performs the checks that REST and gRPC share. The memory
// use is proportional to the size of the JSON. The parser does not recurse.
absl::StatusOr<InferJson> ReadInferJson(absl::string_view json,
                                        int64_t max_raw_bytes);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_JSON_H_
