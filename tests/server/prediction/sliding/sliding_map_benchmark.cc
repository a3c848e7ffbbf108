// Measures how long one thread needs for the class map of sliding windows.
// SlidingMap::Cost() uses the results, which are the times per logit of a
// window and per logit of a map pixel.

#include <random>
#include <vector>

#include "benchmark/benchmark.h"
#include "server/prediction/sliding/sliding_map.h"

namespace sfmamba::prediction {
namespace {

void BM_SlidingMap(benchmark::State& state) {
  const int classes = state.range(0), stride = state.range(1);
  // The resized picture and the window have the sizes of mmsegmentation's
  // settings for ADE20K. The map has the size of a photograph.
  const SlideGrid grid({512, 2048}, {512, 512}, {stride, stride});
  const image::PictureSize out = {1000, 4000};
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  model::Segmentation logits;
  logits.height = logits.width = 128;
  for (int i = 0; i < 128 * 128 * classes; ++i) {
    logits.logits.push_back(normal(random));
  }
  for (auto _ : state) {
    SlidingMap map(grid, classes, out, /*confidence=*/false);
    state.PauseTiming();
    for (int i = 0; i < grid.windows(); ++i) map.Add(i, logits);
    state.ResumeTiming();
    while (!map.done()) map.ComputeNext();
    benchmark::DoNotOptimize(map.Take().labels.data());
  }
  state.counters["windows"] = grid.windows();
  state.counters["expected_ms"] =
      absl::ToDoubleMilliseconds(SlidingMap::Cost(grid, classes, out));
}
BENCHMARK(BM_SlidingMap)
    ->ArgsProduct({{21, 150}, {64, 341, 512}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sfmamba::prediction

BENCHMARK_MAIN();
