#ifndef SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_HEADER_H_
#define SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sfmamba::weights {

// What a safetensors header says of one tensor.
struct SafetensorsEntry {
  std::string dtype;           // Such as "F32"; any string.
  std::vector<int64_t> shape;  // At most kMaxRank sizes, none negative.
  int64_t begin = 0;           // Bytes from the start of the data.
  int64_t end = 0;
};

constexpr int kMaxRank = 8;

// Reads a header: a JSON object that gives each tensor an object with dtype,
// shape and data_offsets (each exactly once, nothing else), and perhaps
// "__metadata__", an object of strings, which is dropped. It begins with the
// brace; white space may follow it. Strict JSON: valid UTF-8 and escapes, plain
// integers, no name twice. Depth is bounded by the grammar.
//
// Says nothing about types, sizes or overlap. INVALID_ARGUMENT with the offset
// of the first byte that does not fit, and the tensor if inside one.
absl::StatusOr<std::map<std::string, SafetensorsEntry>> ParseSafetensorsHeader(
    absl::string_view header);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_SAFETENSORS_HEADER_H_
