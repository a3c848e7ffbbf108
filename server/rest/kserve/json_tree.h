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

// Collects the elements of one input from JSON. The caller need not know the
// datatype before it calls Take(). The errors are INVALID_ARGUMENT and name no
// field. Thread-compatible.
class JsonElements {
 public:
  // Accepts at most `max_bytes` bytes of elements. A number counts as four
  // bytes. `json_bytes` is the size of the whole JSON.
  JsonElements(int64_t json_bytes, int64_t max_bytes)
      : json_bytes_(json_bytes), max_bytes_(max_bytes) {}

  absl::Status AddNumber(double value);
  // Adds an element of type BYTES.
  absl::Status AddBytes(absl::string_view bytes);
  // Adds an element of type BYTES from base64 text.
  absl::Status AddBase64(absl::string_view text);

  int64_t bytes() const { return raw_.size(); }
  // Returns the elements in the format of raw_input_contents for `datatype`.
  // Does not check that `datatype` is a known type. No element may be added
  // afterwards.
  absl::StatusOr<std::string> Take(absl::string_view datatype);

 private:
  enum class Kind { kNone, kNumbers, kBytes };

  // Checks that an element of kind `kind` with `bytes` bytes may be added.
  absl::Status Begin(Kind kind, int64_t bytes);
  // Converts the collected numbers to UINT8 and returns their bytes.
  std::string Narrow() const;

  int64_t json_bytes_;
  int64_t max_bytes_;
  Kind kind_ = Kind::kNone;
  int64_t count_ = 0;
  // The collected elements. A number is stored as a float. A string is stored
  // as a BYTES element, which begins with its length in four bytes.
  std::string raw_;
  // not_uint8_ is the error for the first number that is not a UINT8. not_fp32_
  // is the error for the first number that is not an FP32. If there is no such
  // number, the member is OK.
  absl::Status not_uint8_;
  absl::Status not_fp32_;
};

// The parsed JSON of an inference request. The limits of ReadInferTree() are
// already checked. The values are not interpreted yet.
struct InferTree {
  // The root is an object. Its arrays inputs[i].data are empty.
  nlohmann::json root;
  // Each pair is the index i of an array inputs[i].data and the elements of
  // this array. The pairs are in order of i.
  std::vector<std::pair<size_t, JsonElements>> data;
};

// Parses the JSON of an inference request. Collects the elements of each array
// inputs[i].data and flattens nested arrays. The elements may have at most
// `max_raw_bytes` bytes in total. The keys of an object must be unique. Besides
// the elements, the JSON may have at most a few thousand values, which limits
// the memory use. The parser does not recurse. Returns the same errors as
// ReadInferJson().
absl::StatusOr<InferTree> ReadInferTree(absl::string_view json,
                                        int64_t max_raw_bytes);

// Returns the kind of a value for an error message, such as "a boolean".
const char* KindName(nlohmann::json::value_t kind);
// Returns INVALID_ARGUMENT with a message such as "got a boolean, expected
// ...".
absl::Status WrongKind(absl::string_view field, nlohmann::json::value_t got,
                       absl::string_view expected);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_JSON_TREE_H_
