#ifndef SFMAMBA_SERVER_REST_KSERVE_JSON_TREE_H_
#define SFMAMBA_SERVER_REST_KSERVE_JSON_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace sfmamba::rest {

// Collects the elements of an input from JSON, where the datatype may be said
// before or after them. Errors are INVALID_ARGUMENT without a field.
// Thread-compatible.
class JsonElements {
 public:
  // At most `max_bytes` of elements are taken, out of JSON of `json_bytes`.
  // Numbers have four bytes each.
  JsonElements(int64_t json_bytes, int64_t max_bytes)
      : json_bytes_(json_bytes), max_bytes_(max_bytes) {}

  absl::Status AddNumber(double value);
  // An element of BYTES.
  absl::Status AddBytes(absl::string_view bytes);
  // Adds an element of BYTES from its base64.
  absl::Status AddBase64(absl::string_view text);

  int64_t bytes() const { return raw_.size(); }
  // The elements as raw contents of this type, whose own name is not checked.
  // Nothing can be added afterwards.
  absl::StatusOr<std::string> Take(absl::string_view datatype);

 private:
  enum class Kind { kNone, kNumbers, kBytes };

  // Makes room for `bytes` more of an element of this kind.
  absl::Status Begin(Kind kind, int64_t bytes);
  // The numbers in a byte each.
  std::string Narrow() const;

  int64_t json_bytes_;
  int64_t max_bytes_;
  Kind kind_ = Kind::kNone;
  int64_t count_ = 0;
  std::string raw_;  // Floats, or elements of BYTES.
  // Why the numbers are no UINT8, or no FP32: the first that is not.
  absl::Status not_uint8_;
  absl::Status not_fp32_;
};

// The JSON of a request to infer, with limits, but not yet understood.
struct InferTree {
  nlohmann::json root;  // An object; the arrays inputs[i].data are empty.
  // The elements of these arrays, each with its i, in their order.
  std::vector<std::pair<size_t, JsonElements>> data;
};

// Parses the JSON and collects the elements, nested arrays flattened, of which
// at most `max_raw_bytes` are taken. An object's keys must differ. Takes memory
// in proportion to the elements and to at most some thousand other values, and
// never recurses. Returns the errors of ReadInferJson().
absl::StatusOr<InferTree> ReadInferTree(absl::string_view json,
                                        int64_t max_raw_bytes);

// What a value is, for errors: "a boolean".
const char* KindName(nlohmann::json::value_t kind);
// INVALID_FIELD: "got a boolean, expected ...".
absl::Status WrongKind(absl::string_view field, nlohmann::json::value_t got,
                       absl::string_view expected);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_JSON_TREE_H_
