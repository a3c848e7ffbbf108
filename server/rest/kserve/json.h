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

// Where the elements of an input are.
struct InputData {
  // After the JSON: the parameter `binary_data_size`.
  std::optional<int64_t> binary_bytes;
  // In the JSON: the elements of `data` as raw_input_contents has them.
  std::optional<std::string> raw;
};

// How the outputs of an answer are to come: as binary data, or in the JSON. The
// parameters `binary_data` and `binary_data_output` say it.
struct OutputForms {
  std::vector<std::optional<bool>> binary;  // One for each requested output.
  bool default_binary = false;              // For outputs that do not say.

  bool IsBinary(int output) const;
  // Whether an output may come in the JSON.
  bool AnyJson() const;
};

// A request to infer, as its JSON says.
struct InferJson {
  // The message without the model's name and version, which the path has,
  // without elements, and without the parameters that only REST has.
  inference::ModelInferRequest message;
  std::vector<InputData> inputs;  // One for each input of the message.
  OutputForms outputs;
};

// Reads the JSON of a request. `data` of BYTES has strings, which stand for
// their UTF-8, or objects {"b64": "<base64>"}; of FP32 and UINT8 it has
// numbers; nested arrays are flattened in their order. At most
// `max_raw_bytes` of elements are taken. Of an object's keys, those that are
// not known are ignored, and each may stand there once. A string has at most
// 16 MiB, and there are at most 4096 values beside the elements.
//
// Returns INVALID_ARGUMENT: MALFORMED_MESSAGE if it is no JSON, and
// INVALID_FIELD, naming the field. What gRPC's messages can say too is not
// checked here. Takes memory in proportion to the JSON and never recurses.
absl::StatusOr<InferJson> ReadInferJson(absl::string_view json,
                                        int64_t max_raw_bytes);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_JSON_H_
