#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/detection/nms.h"
#include "tests/kernels/benchmark_cases.h"

namespace sfmamba::kernels {
namespace {

// Boxes like those that a region proposal network finds in an 800 x 1333
// picture: the best 1000 boxes of each of five levels (819 of the last level).
// They crowd around 40 objects.
struct Proposals {
  Proposals() {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> x(0, 1333), y(0, 800);
    std::uniform_real_distribution<float> uniform(0, 1);
    std::normal_distribution<float> normal;
    std::vector<std::array<float, 4>> things;
    for (int i = 0; i < 40; ++i) {
      const float side = 16 * std::exp2(5 * uniform(random));
      const float ratio = std::exp2(uniform(random) - 0.5f);
      things.push_back({x(random), y(random), side * ratio, side / ratio});
    }
    for (int i = 0; i < 4819; ++i) {
      const std::array<float, 4>& thing = things[random() % things.size()];
      const float width = thing[2] * std::exp2(0.3f * normal(random));
      const float height = thing[3] * std::exp2(0.3f * normal(random));
      const float centre_x = thing[0] + 0.15f * width * normal(random);
      const float centre_y = thing[1] + 0.15f * height * normal(random);
      for (float corner : {centre_x - width / 2, centre_y - height / 2,
                           centre_x + width / 2, centre_y + height / 2}) {
        const float limit = boxes.size() % 2 == 0 ? 1333 : 800;
        boxes.push_back(std::clamp(corner, 0.0f, limit));
      }
      scores.push_back(uniform(random));
      groups.push_back(i / 1000);
    }
  }

  std::vector<float> boxes, scores;
  std::vector<int32_t> groups;
};

void Nms(benchmark::State& state, int max_kept) {
  const Proposals proposals;
  const int count = static_cast<int>(proposals.scores.size());
  std::vector<int32_t> kept(count);
  int num_kept = 0;
  Time(state, [&](CpuIsa isa) {
    num_kept = NmsCpu({count, proposals.boxes.data(), proposals.scores.data(),
                       proposals.groups.data(), 0.7f, max_kept, kept.data()},
                      isa);
  });
  state.counters["kept"] = num_kept;
}
BENCHMARK_CAPTURE(Nms, All, 4819)->Apply(IsaCases);
BENCHMARK_CAPTURE(Nms, Best1000, 1000)->Apply(IsaCases);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
