#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/segmentation/segmentation_argmax.h"
#include "tests/kernels/benchmark_cases.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr int kClasses = 150;

// Times the kernel for a picture of `out_height` x `out_width` pixels. The
// model's input had 512 x 683 pixels.
void SegmentationArgmax(benchmark::State& state, int out_height, int out_width,
                        bool confidence) {
  std::mt19937 random(1);
  Matrix<float> logits(128 * 171, kClasses, kDense);
  logits.FillNormal(random, 0, 2);
  std::vector<uint16_t> labels(out_height * out_width);
  std::vector<uint8_t> confidences(out_height * out_width);
  std::vector<int64_t> areas(kClasses);
  const SegmentationArgmaxArgs args = {
      logits.data(), 128,           171,
      kClasses,      512,           683,
      out_height,    out_width,     0,
      out_height,    labels.data(), confidence ? confidences.data() : nullptr,
      areas.data()};
  Time(state, [&](CpuIsa isa) { SegmentationArgmaxCpu(args, isa); });
}
BENCHMARK_CAPTURE(SegmentationArgmax, InputSize, 512, 683, false)
    ->Apply(IsaCases);
BENCHMARK_CAPTURE(SegmentationArgmax, Vga, 480, 640, false)->Apply(IsaCases);
BENCHMARK_CAPTURE(SegmentationArgmax, VgaConfidence, 480, 640, true)
    ->Apply(IsaCases);
BENCHMARK_CAPTURE(SegmentationArgmax, TwelveMegapixels, 3000, 4000, false)
    ->Apply(IsaCases);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
