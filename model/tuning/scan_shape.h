#ifndef SFMAMBA_MODEL_TUNING_SCAN_SHAPE_H_
#define SFMAMBA_MODEL_TUNING_SCAN_SHAPE_H_

#include <string>

namespace sfmamba::tuning {

// What a selective scan is asked for, as far as its speed depends on it.
struct ScanShape {
  enum Type { kFloat, kFloat16, kBFloat16 };

  Type type = kFloat;
  int channels = 0;
  int states = 0;
  int sequences = 0;    // NB
  int length = 0;       // Tokens of a sequence; of the longest if ragged.
  bool ragged = false;  // Sequences differ in length.
};

// Such as "bf16 160 channels 8 states 128 x 198".
std::string ToString(const ScanShape& shape);

// Where plans were measured. Those of another device, or of other kernels, are
// no guide. Both strings are printable ASCII, at most 200 characters.
struct ScanDevice {
  std::string name;  // As the driver gives it: "NVIDIA H200".
  int multiprocessors = 0;
  std::string build;  // Of the kernels: ScanBuildId().

  bool operator==(const ScanDevice& other) const {
    return name == other.name && multiprocessors == other.multiprocessors &&
           build == other.build;
  }
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_SHAPE_H_
