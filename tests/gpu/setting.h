#ifndef SFMAMBA_TESTS_GPU_SETTING_H_
#define SFMAMBA_TESTS_GPU_SETTING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba {

// The device and the build with which a measurement was made. Each line of JSON
// with a result contains some of these fields.
struct Setting {
  std::string device;  // "NVIDIA H200"
  int multiprocessors = 0;
  std::string driver;
  std::string build;            // ScanBuildId()
  double clock_hz = 0;          // The multiprocessors' maximum clock rate.
  double bytes_per_second = 0;  // Read and written by a large copy, measured.
  int fp32_per_clock = 128;     // Multiply-adds per multiprocessor and clock.

  // Returns members of a JSON object without its braces: "device",
  // "multiprocessors", "driver" and "build".
  std::string Json() const;
  // Returns one line of JSON: the members of Json(), the clock rate and the
  // speed of a copy.
  std::string Line() const;
};

// The GPU's state at one moment.
struct Clocks {
  int sm_mhz = 0, memory_mhz = 0, celsius = 0;
  double watts = 0;
  // NVML's bits of the reasons that limit the clocks; 0 if unknown.
  uint64_t reasons = 0;

  // Returns one line of JSON. `when` is "before" or "after" the measurement.
  std::string Line(absl::string_view when) const;
};

// Parses two lines of nvidia-smi: the values in the order above, such as "1980,
// 3201, 41, 212.50", and the reasons, such as "0x0000000000000004". Invalid
// values, such as [N/A], become 0.
Clocks ParseClocks(absl::string_view line, absl::string_view reasons);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_SETTING_H_
