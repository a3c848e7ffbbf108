#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/detection/roi_align.h"
#include "tests/kernels/benchmark_cases.h"

namespace sfmamba::kernels {
namespace {

// Returns regions of an 800 x 1333 picture. Their sides are from 16 to 600
// pixels, uniform in their logarithm. They cover every level, most of all the
// finest.
std::vector<float> Regions(int count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> x(0, 1333), y(0, 800), uniform(0, 1);
  std::vector<float> rois;
  for (int i = 0; i < count; ++i) {
    const float side = 16 * std::pow(600.0f / 16, uniform(random));
    const float ratio = std::exp2(uniform(random) - 0.5f);
    const float centre_x = x(random), centre_y = y(random);
    const float width = side * ratio / 2, height = side / ratio / 2;
    rois.push_back(std::max(centre_x - width, 0.0f));
    rois.push_back(std::max(centre_y - height, 0.0f));
    rois.push_back(std::min(centre_x + width, 1333.0f));
    rois.push_back(std::min(centre_y + height, 800.0f));
  }
  return rois;
}

// Times the alignment of 256 channels for box heads (7 x 7 bins) or mask heads
// (14 x 14).
void RoiAlign(benchmark::State& state, int num_rois, int size) {
  constexpr int kChannels = 256;
  RoiAlignArgs args{};
  args.num_levels = 4;
  args.channels = kChannels;
  args.finest_scale = 56;
  args.num_rois = num_rois;
  args.out_height = args.out_width = size;
  const std::vector<float> rois = Regions(num_rois);
  args.rois = rois.data();
  std::vector<std::vector<float>> maps;
  for (int i = 0; i < args.num_levels; ++i) {
    const int stride = 4 << i, height = 800 / stride, width = 1344 / stride;
    maps.emplace_back(int64_t{height} * width * kChannels, 0.5f);
    args.levels[i] = {maps[i].data(), height, width, 1.0f / stride};
  }
  std::vector<float> out(int64_t{num_rois} * size * size * kChannels);
  args.out = out.data();
  Time(state, [&](CpuIsa isa) { RoiAlignCpu(args, isa); });
}
BENCHMARK_CAPTURE(RoiAlign, Boxes, 1000, 7)->Apply(IsaCases);
BENCHMARK_CAPTURE(RoiAlign, Masks, 100, 14)->Apply(IsaCases);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
