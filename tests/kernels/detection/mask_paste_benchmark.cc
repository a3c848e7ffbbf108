#include <algorithm>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/detection/mask_paste.h"
#include "tests/kernels/benchmark_cases.h"

namespace sfmamba::kernels {
namespace {

constexpr int kSide = 28, kCount = 100, kHeight = 384, kWidth = 640;

// Times the pasting of 100 masks with boxes of all sizes into a picture of 640
// x 384.
void MaskPaste(benchmark::State& state) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> masks(kCount * kSide * kSide);
  for (float& value : masks) value = uniform(random);
  std::vector<MaskPasteArgs> pastes;
  int64_t pixels = 0, largest = 0;
  for (int i = 0; i < kCount; ++i) {
    const auto [x1, x2] =
        std::minmax({kWidth * uniform(random), kWidth * uniform(random)});
    const auto [y1, y2] =
        std::minmax({kHeight * uniform(random), kHeight * uniform(random)});
    const PixelRect area = MaskArea(x1, y1, x2, y2, kHeight, kWidth);
    pastes.push_back({&masks[i * kSide * kSide], kSide, x1, y1, x2, y2, 0.5f,
                      area, nullptr});
    pixels += int64_t{area.width()} * area.height();
    largest = std::max(largest, int64_t{area.width()} * area.height());
  }
  std::vector<uint8_t> out(largest);
  for (MaskPasteArgs& args : pastes) args.out = out.data();
  Time(state, [&](CpuIsa isa) {
    for (const MaskPasteArgs& args : pastes) MaskPasteCpu(args, isa);
  });
  state.counters["pixels"] = pixels;
}
BENCHMARK(MaskPaste)->Apply(IsaCases);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
