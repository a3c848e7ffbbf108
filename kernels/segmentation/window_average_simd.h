// Computes the mean of the logits of overlapping windows by vectors of type V,
// one class per lane. window_average_isa.cc includes this header and is
// compiled once for each instruction set, with a different V.
#ifndef SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_SIMD_H_
#define SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_SIMD_H_

#include <algorithm>
#include <cstdint>

#include "kernels/segmentation/window_average.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// Element i of a resized line, which is a weighted sum of two samples of the
// original line. Each sample has `size` values.
struct TwoSamples {
  TwoSamples(const ResizeTaps& taps, int i, const float* line, int64_t size)
      : first(line + taps.index.data()[i * taps.count] * size),
        second(line + taps.index.data()[(i + 1) * taps.count - 1] * size),
        first_weight(taps.weight.data()[i * taps.count]),
        second_weight(taps.count == 2 ? taps.weight.data()[i * taps.count + 1]
                                      : 0) {}

  template <typename V>
  V At(int64_t k, int lanes) const {
    return V::Set(first_weight) * LoadLanes<V>(first + k, lanes) +
           V::Set(second_weight) * LoadLanes<V>(second + k, lanes);
  }

  const float* first;
  const float* second;
  float first_weight, second_weight;
};

template <typename V>
void AddWindow(const WindowAverageArgs& args,
               const WindowAverageArgs::Window& window, float* scratch) {
  const int64_t line = int64_t{args.width} * args.classes;
  const TwoSamples row(*args.rows, args.row - window.top, window.logits, line);
  ForEachVector<V>(line, [&](int64_t i, int lanes) {
    StoreLanes(row.template At<V>(i, lanes), scratch + i, lanes);
  });
  const int pixels = args.columns->index.size() / args.columns->count;
  for (int x = 0; x < pixels; ++x) {
    const TwoSamples pixel(*args.columns, x, scratch, args.classes);
    float* const sum = args.average + int64_t{window.left + x} * args.classes;
    ForEachVector<V>(args.classes, [&](int64_t k, int lanes) {
      StoreLanes(LoadLanes<V>(sum + k, lanes) + pixel.template At<V>(k, lanes),
                 sum + k, lanes);
    });
  }
}

template <typename V>
void Average(const WindowAverageArgs& args, const float* counts,
             float* scratch) {
  std::fill_n(args.average, int64_t{args.picture_width} * args.classes, 0.0f);
  for (int i = 0; i < args.count; ++i) {
    AddWindow<V>(args, args.windows[i], scratch);
  }
  for (int x = 0; x < args.picture_width; ++x) {
    if (counts[x] == 1) continue;
    float* const sum = args.average + int64_t{x} * args.classes;
    ForEachVector<V>(args.classes, [&](int64_t k, int lanes) {
      StoreLanes(LoadLanes<V>(sum + k, lanes) / V::Set(counts[x]), sum + k,
                 lanes);
    });
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_WINDOW_AVERAGE_SIMD_H_
