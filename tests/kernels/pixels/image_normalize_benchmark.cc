#include <vector>

#include "benchmark/benchmark.h"
#include "kernels/pixels/image_normalize.h"
#include "tests/kernels/benchmark_cases.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kHeight = 800, kWidth = 1333, kPixels = kHeight * kWidth;

// Times the normalization of a detector's input.
template <typename T, bool kChannelsLast, bool kPlanar = false>
void ImageNormalize(benchmark::State& state) {
  const std::vector<uint8_t> rgb(3 * kPixels, 77);
  std::vector<T> y(3 * kPixels);
  const ImageNormalizeArgs<T> args = {kHeight,
                                      kWidth,
                                      rgb.data(),
                                      y.data(),
                                      kChannelsLast ? 3 * kWidth : kWidth,
                                      kChannelsLast ? 3 : 1,
                                      kChannelsLast ? 1 : kPixels,
                                      {0.485f, 0.456f, 0.406f},
                                      {0.229f, 0.224f, 0.225f},
                                      kPlanar ? 1 : 3,
                                      kPlanar ? kPixels : 1};
  for (auto _ : state) ImageNormalizeCpu(args);
}
BENCHMARK_TEMPLATE(ImageNormalize, float, true)->Apply(LeastOfFive);
BENCHMARK_TEMPLATE(ImageNormalize, float, false)->Apply(LeastOfFive);
BENCHMARK_TEMPLATE(ImageNormalize, BFloat16, true)->Apply(LeastOfFive);
BENCHMARK_TEMPLATE(ImageNormalize, float, true, true)->Apply(LeastOfFive);

}  // namespace
}  // namespace sfmamba::kernels

BENCHMARK_MAIN();
