#ifndef SFMAMBA_TESTS_MODEL_STOPWATCH_H_
#define SFMAMBA_TESTS_MODEL_STOPWATCH_H_

#include <map>
#include <string>
#include <vector>

namespace sfmamba::model {

// Milliseconds of wall time, and of CPU time on all CPUs.
struct Time {
  double wall = 0, cpu = 0;

  static Time Now();
};

// Measures each part of a benchmark's rounds. The first round only warms up.
//
//   for (int round = 0; round <= rounds; ++round) {
//     const auto y = timed("part", [&] { return Part(x); });
//   }
class Stopwatch {
 public:
  // Runs `part` and returns its result.
  template <typename Part>
  auto operator()(const std::string& name, Part part) {
    const Time start = Time::Now();
    auto result = part();
    const Time end = Time::Now();
    if (times_.count(name) == 0) names_.push_back(name);
    times_[name].push_back({end.wall - start.wall, end.cpu - start.cpu});
    return result;
  }

  // Returns the medians of all parts in order, followed by "all", their sum.
  // The format is lines of text, or members of a JSON object with a comma
  // before each.
  std::string Report(bool json) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::vector<Time>> times_;
};

// Returns the peak memory of this process so far.
double PeakMemoryMiB();

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_STOPWATCH_H_
