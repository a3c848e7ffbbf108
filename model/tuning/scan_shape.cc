#include "model/tuning/scan_shape.h"

#include "absl/strings/str_format.h"

namespace sfmamba::tuning {

std::string ToString(const ScanShape& shape) {
  static constexpr const char* kTypes[] = {"fp32", "fp16", "bf16"};
  return absl::StrFormat("%s %d channels %d states %d x %d%s",
                         kTypes[shape.type], shape.channels, shape.states,
                         shape.sequences, shape.length,
                         shape.ragged ? " ragged" : "");
}

}  // namespace sfmamba::tuning
