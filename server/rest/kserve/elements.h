#ifndef SFMAMBA_SERVER_REST_KSERVE_ELEMENTS_H_
#define SFMAMBA_SERVER_REST_KSERVE_ELEMENTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_ELEMENTS_H_
