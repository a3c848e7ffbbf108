#ifndef SFMAMBA_TESTS_MODEL_STOPWATCH_H_
#define SFMAMBA_TESTS_MODEL_STOPWATCH_H_

#include <map>
#include <string>
#include <vector>

namespace sfmamba::model {

// Milliseconds of elapsed time, and of CPU time on all CPUs together.
struct Time {
  double wall = 0, cpu = 0;

  static Time Now();
};

// Measures each part of a benchmark's rounds. The first round only warms up.
//
//   Stopwatch timed;
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

  // Returns the median time of each part, in order of the first calls. The sum
  // of the medians follows under the name "all". If `json` is false, each part
  // is a line of text. If `json` is true, each part is a member of a JSON
  // object, with a comma before it.
  std::string Report(bool json) const;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::vector<Time>> times_;
};

// Returns the peak of this process's physical memory so far, in MiB.
double PeakMemoryMiB();

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_STOPWATCH_H_
