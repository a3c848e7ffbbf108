#include "tests/model/stopwatch.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace sfmamba::model {
namespace {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Returns the median of all times except the first.
Time MedianOf(const std::vector<Time>& times) {
  std::vector<double> wall, cpu;
  for (size_t i = 1; i < times.size(); ++i) {
    wall.push_back(times[i].wall);
    cpu.push_back(times[i].cpu);
  }
  return {Median(wall), Median(cpu)};
}

}  // namespace

Time Time::Now() {
  timespec cpu;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  return {absl::ToDoubleMilliseconds(absl::Now() - absl::UnixEpoch()),
          absl::ToDoubleMilliseconds(absl::DurationFromTimespec(cpu))};
}

std::string Stopwatch::Report(bool json) const {
  std::string report;
  const auto add = [&](const std::string& name, const Time& time) {
    if (json) {
      absl::StrAppendFormat(&report, R"(, "%s": {"wall": %.1f, "cpu": %.1f})",
                            name, time.wall, time.cpu);
    } else {
      absl::StrAppendFormat(&report, "%-16s %9.1f ms, processors %9.1f ms\n",
                            name, time.wall, time.cpu);
    }
  };
  Time all;
  for (const std::string& name : names_) {
    const Time time = MedianOf(times_.at(name));
    all.wall += time.wall;
    all.cpu += time.cpu;
    add(name, time);
  }
  add("all", all);
  return report;
}

double PeakMemoryMiB() {
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

}  // namespace sfmamba::model
