#ifndef SFMAMBA_MODEL_TUNING_SCAN_SHAPE_H_
#define SFMAMBA_MODEL_TUNING_SCAN_SHAPE_H_

#include <string>

namespace sfmamba::tuning {

// The properties of a selective scan on which its speed depends.
struct ScanShape {
  enum Type { kFloat, kFloat16, kBFloat16 };

  Type type = kFloat;
  int channels = 0;
  int states = 0;
  int sequences = 0;
  int length = 0;       // Tokens per sequence; if ragged, of the longest.
  bool ragged = false;  // The sequences differ in length.
};

// Returns a text such as "bf16 160 channels 8 states 128 x 198".
std::string ToString(const ScanShape& shape);

// The device and the kernels with which plans were measured. Plans are used
// only with the same device and kernels. Both strings are printable ASCII of at
// most 200 characters.
struct ScanDevice {
  std::string name;  // The driver's name, such as "NVIDIA H200".
  int multiprocessors = 0;
  std::string build;  // The kernels' ScanBuildId().

  bool operator==(const ScanDevice& other) const {
    return name == other.name && multiprocessors == other.multiprocessors &&
           build == other.build;
  }
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_SHAPE_H_
