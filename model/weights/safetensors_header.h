#ifndef SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_HEADER_H_
#define SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sfmamba::weights {

// A tensor's entry in a safetensors header.
struct SafetensorsEntry {
  std::string dtype;           // Such as "F32"; not checked.
  std::vector<int64_t> shape;  // At most kMaxRank sizes, none negative.
  int64_t begin = 0;           // In bytes from the start of the data, as `end`.
  int64_t end = 0;
};

constexpr int kMaxRank = 8;

// Parses a header and returns its entries by tensor name. A header is a JSON
// object with a member for each tensor. The member is an object with exactly
// the members dtype, shape and data_offsets. An optional member "__metadata__",
// an object of strings, is ignored. The header begins with the brace and may
// end with white space. JSON is parsed strictly. UTF-8 and escapes must be
// valid, numbers must be integers, and names must be unique. The grammar limits
// the nesting depth.
//
// Types, sizes and overlaps are not checked. If the header is invalid, returns
// INVALID_ARGUMENT with the offset of the first invalid byte. If this byte is
// inside a tensor's entry, the error also names the tensor.
absl::StatusOr<std::map<std::string, SafetensorsEntry>> ParseSafetensorsHeader(
    absl::string_view header);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_HEADER_H_
