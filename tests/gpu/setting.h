#ifndef SFMAMBA_TESTS_GPU_SETTING_H_
#define SFMAMBA_TESTS_GPU_SETTING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba {

// What a figure was measured on; part of each line of JSON.
struct Setting {
  std::string device;  // "NVIDIA H200"
  int multiprocessors = 0;
  std::string driver;
  std::string build;            // ScanBuildId()
  double clock_hz = 0;          // The highest of the multiprocessors.
  double bytes_per_second = 0;  // Of a large copy, read and written; measured.
  int fp32_per_clock = 128;     // Multiply-adds of a multiprocessor.

  // As members of a JSON object: "device": ..., "driver": ..., "build": ...
  std::string Json() const;
  // One line of JSON with all of it.
  std::string Line() const;
};

// What the card was doing at one moment.
struct Clocks {
  int sm_mhz = 0, memory_mhz = 0, celsius = 0;
  double watts = 0;
  // Why the clocks are not higher, as NVML's bits; 0 if unknown.
  uint64_t reasons = 0;

  // One line of JSON; `when` is "before" or "after" what was measured.
  std::string Line(absl::string_view when) const;
};

// Of a line "1980, 3201, 41, 212.50" (the order above) and of a second one,
// "0x0000000000000004", as nvidia-smi prints them; zeros where it says [N/A] or
// something else.
Clocks ParseClocks(absl::string_view line, absl::string_view reasons);

// `text` between quotes, as JSON wants it.
std::string JsonString(absl::string_view text);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_SETTING_H_
