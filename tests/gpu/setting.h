#ifndef SFMAMBA_TESTS_GPU_SETTING_H_
#define SFMAMBA_TESTS_GPU_SETTING_H_

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
  // One line for people.
  std::string Text() const;
};

// What the card was doing at one moment.
struct Clocks {
  int sm_mhz = 0, memory_mhz = 0, celsius = 0;
  double watts = 0;

  std::string Text() const;
};

// Of a line "1980, 3201, 41, 212.50" (the order above), as nvidia-smi prints
// it; zeros where it says [N/A] or something else.
Clocks ParseClocks(absl::string_view line);

// `text` between quotes, as JSON wants it.
std::string JsonString(absl::string_view text);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_SETTING_H_
