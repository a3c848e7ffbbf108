#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/segmentation/window_average.h"

namespace sfmamba::kernels {
namespace {

// Resizes `line` by `taps`. Returns value k of element i of the resized line.
// Each sample of the original line has `size` values.
float Resized(const ResizeTaps& taps, int i, const float* line, int64_t size,
              int64_t k) {
  float sum = 0;
  for (int t = i * taps.count; t < (i + 1) * taps.count; ++t) {
    sum += taps.weight[t] * line[taps.index[t] * size + k];
  }
  return sum;
}

}  // namespace

void WindowAverageScalar(const WindowAverageArgs& args, const float* counts,
                         float* scratch) {
  const int64_t line = int64_t{args.width} * args.classes;
  const int pixels = args.columns->index.size() / args.columns->count;
  std::fill_n(args.average, int64_t{args.picture_width} * args.classes, 0.0f);
  for (int i = 0; i < args.count; ++i) {
    const WindowAverageArgs::Window& window = args.windows[i];
    for (int64_t k = 0; k < line; ++k) {
      scratch[k] =
          Resized(*args.rows, args.row - window.top, window.logits, line, k);
    }
    for (int x = 0; x < pixels; ++x) {
      float* const sum = args.average + int64_t{window.left + x} * args.classes;
      for (int k = 0; k < args.classes; ++k) {
        sum[k] += Resized(*args.columns, x, scratch, args.classes, k);
      }
    }
  }
  for (int x = 0; x < args.picture_width; ++x) {
    float* const sum = args.average + int64_t{x} * args.classes;
    for (int k = 0; k < args.classes; ++k) sum[k] /= counts[x];
  }
}

void WindowAverageCpu(const WindowAverageArgs& args, CpuIsa isa) {
  std::vector<float> counts(args.picture_width);
  const int pixels = args.columns->index.size() / args.columns->count;
  for (int i = 0; i < args.count; ++i) {
    for (int x = 0; x < pixels; ++x) ++counts[args.windows[i].left + x];
  }
  std::vector<float> scratch(int64_t{args.width} * args.classes);
  switch (isa) {
    case CpuIsa::kScalar:
      return WindowAverageScalar(args, counts.data(), scratch.data());
    case CpuIsa::kAvx2:
      return WindowAverageAvx2(args, counts.data(), scratch.data());
    case CpuIsa::kAvx512:
      return WindowAverageAvx512(args, counts.data(), scratch.data());
  }
}

}  // namespace sfmamba::kernels
