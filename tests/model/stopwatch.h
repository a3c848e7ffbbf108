#ifndef SFMAMBA_TESTS_MODEL_STOPWATCH_H_
#define SFMAMBA_TESTS_MODEL_STOPWATCH_H_

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sfmamba {

// The time of each part of a benchmark's rounds.
//
//   for (int round = 0; round <= rounds; ++round) {
//     const auto y = timed("part", [&] { return Part(x); });
//   }
class Stopwatch {
 public:
  // Runs `part` and returns what it does.
  template <typename Part>
  auto operator()(const std::string& name, Part part) {
    const absl::Time start = absl::Now();
    auto result = part();
    const double ms = absl::ToDoubleMilliseconds(absl::Now() - start);
    if (ms_.count(name) == 0) names_.push_back(name);
    ms_[name].push_back(ms);
    return result;
  }

  // In the order of the first round.
  const std::vector<std::string>& names() const { return names_; }

  // Without the first round, which warms up.
  double Median(const std::string& name) const {
    std::vector<double> ms(ms_.at(name).begin() + 1, ms_.at(name).end());
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::vector<double>> ms_;
};

// Of this process so far.
inline double PeakMemoryMiB() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() >= 2 && words[0] == "VmHWM:" &&
        absl::SimpleAtoi(words[1], &kib)) {
      return kib / 1024.0;
    }
  }
  return 0;
}

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_MODEL_STOPWATCH_H_
