// Computes the argmax of resized logits by vectors of type V, one class per
// lane. segmentation_argmax_isa.cc includes this header and is compiled once
// for each instruction set, with a different V.
#ifndef SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_SIMD_H_
#define SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_SIMD_H_

#include <type_traits>

#include "kernels/segmentation/segmentation_argmax.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

constexpr float kInfinity = __builtin_inff();

// Returns the weighted sum of kTaps sources, which are added in the same order
// as in the scalar loop.
template <typename V, int kTaps>
inline V WeightedSum(const float* const (&source)[kTaps],
                     const V (&weight)[kTaps], int64_t i) {
  V sum = weight[0] * V::Load(source[0] + i);
  for (int t = 1; t < kTaps; ++t) {
    sum = sum + weight[t] * V::Load(source[t] + i);
  }
  return sum;
}

// Computes row y of the result, [width, classes], in which the columns are not
// yet resized.
template <typename V, int kTaps>
void ResizeRow(const SegmentationArgmaxArgs& args, const ResizeTaps& taps,
               int y, float* row) {
  const int64_t count = int64_t{args.width} * args.classes;
  const float* source[kTaps];
  V weight[kTaps];
  for (int t = 0; t < kTaps; ++t) {
    source[t] = args.logits + taps.index.data()[y * kTaps + t] * count;
    weight[t] = V::Set(taps.weight.data()[y * kTaps + t]);
  }
  int64_t i = 0;
  for (; i + V::kWidth <= count; i += V::kWidth) {
    WeightedSum<V>(source, weight, i).Store(row + i);
  }
  for (; i < count; ++i) {
    float sum = taps.weight.data()[y * kTaps] * source[0][i];
    for (int t = 1; t < kTaps; ++t) {
      sum += taps.weight.data()[y * kTaps + t] * source[t][i];
    }
    row[i] = sum;
  }
}

// Interpolates the logits of one pixel from a resized row.
template <typename V, int kTaps>
struct Pixel {
  void Set(const float* row, int classes, const ResizeTaps& columns, int x) {
    for (int t = 0; t < kTaps; ++t) {
      source[t] = row + int64_t{columns.index.data()[x * kTaps + t]} * classes;
      weight[t] = V::Set(columns.weight.data()[x * kTaps + t]);
    }
  }

  // Returns the logits of classes k .. k + kWidth - 1. Values beyond the last
  // class are meaningless.
  V Logits(int k) const { return WeightedSum<V>(source, weight, k); }

  const float* source[kTaps];
  V weight[kTaps];
};

// The best class so far, separately for each lane.
template <typename V>
struct Best {
  void Meet(V logits, V index) {
    label = Select(Less(value, logits), index, label);
    value = Max(logits, value);
  }

  V value = V::Set(-kInfinity);
  V label = V::Set(0.0f);
};

// Returns a vector whose lane i holds i.
template <typename V>
inline V LaneIndices() {
  static constexpr float kLanes[] = {0, 1, 2,  3,  4,  5,  6,  7,
                                     8, 9, 10, 11, 12, 13, 14, 15};
  return V::Load(kLanes);
}

// Divides the classes into vectors of classes k .. k + kWidth - 1. Calls
// f_last(k, index) for the last vector and f(k, index) for all vectors before
// it. Lane i of `index` holds k + i. f_last must ignore lanes whose index is
// `classes` or more.
template <typename V, typename F, typename Last>
inline void ForEachClass(int classes, F f, Last f_last) {
  V index = LaneIndices<V>();
  int k = 0;
  for (; k + V::kWidth < classes; k += V::kWidth) {
    f(k, index);
    index = index + V::Set(V::kWidth);
  }
  f_last(k, index);
}

template <typename V, int kTaps>
uint8_t Confidence(const Pixel<V, kTaps>& pixel, int classes, float best) {
  // Returns exp(logit - best), which is at most 1, or NaN if the logit is NaN.
  const auto exponential = [&](int k) {
    const V power = (pixel.Logits(k) - V::Set(best)) * V::Set(kLog2E);
    return Select(IsNan(power), power, Exp2(Max(V::Set(-126.0f), power)));
  };
  V sum = V::Set(0.0f);
  ForEachClass<V>(
      classes, [&](int k, V) { sum = sum + exponential(k); },
      [&](int k, V index) {
        const typename V::Mask inside = Less(index, V::Set(classes));
        sum = sum + Select(inside, exponential(k), V::Set(0.0f));
      });
  const float total = Sum(sum);
  return total >= 1 ? static_cast<uint8_t>(255.0f / total + 0.5f) : 0;
}

// Classifies kPixels pixels of row y, which begin at column x. The comparisons
// of one pixel depend on each other, so several pixels are processed together
// and their comparisons overlap.
template <typename V, int kTaps, int kPixels>
void ClassifyPixels(const SegmentationArgmaxArgs& args,
                    const ResizeTaps& columns, const float* row, int y, int x) {
  Pixel<V, kTaps> pixel[kPixels];
  for (int p = 0; p < kPixels; ++p) {
    pixel[p].Set(row, args.classes, columns, x + p);
  }
  Best<V> best[kPixels];
  ForEachClass<V>(
      args.classes,
      [&](int k, V index) {
        for (int p = 0; p < kPixels; ++p) {
          best[p].Meet(pixel[p].Logits(k), index);
        }
      },
      [&](int k, V index) {
        const typename V::Mask inside = Less(index, V::Set(args.classes));
        for (int p = 0; p < kPixels; ++p) {
          best[p].Meet(Select(inside, pixel[p].Logits(k), V::Set(-kInfinity)),
                       index);
        }
      });
  for (int p = 0; p < kPixels; ++p) {
    const float value = Largest(best[p].value);
    const int label = static_cast<int>(Smallest(Select(
        Less(best[p].value, V::Set(value)), V::Set(kInfinity), best[p].label)));
    const int64_t place = int64_t{y} * args.out_width + x + p;
    args.labels[place] = static_cast<uint16_t>(label);
    if (args.confidence != nullptr) {
      args.confidence[place] = Confidence(pixel[p], args.classes, value);
    }
    if (args.areas != nullptr) ++args.areas[label];
  }
}

template <typename V, int kTaps>
void ClassifyRow(const SegmentationArgmaxArgs& args, const ResizeTaps& columns,
                 const float* row, int y) {
  constexpr int kPixels = 3;
  int x = 0;
  for (; x + kPixels <= args.out_width; x += kPixels) {
    ClassifyPixels<V, kTaps, kPixels>(args, columns, row, y, x);
  }
  for (; x < args.out_width; ++x) {
    ClassifyPixels<V, kTaps, 1>(args, columns, row, y, x);
  }
}

// Calls f with `taps`, 1 to 4, as a compile-time constant.
template <typename F>
inline void WithTaps(int taps, F f) {
  switch (taps) {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    default:
      return f(std::integral_constant<int, 4>());
  }
}

template <typename V>
void Classify(const SegmentationArgmaxArgs& args, const ResizeTaps& rows,
              const ResizeTaps& columns, float* row) {
  for (int y = args.row_begin; y < args.row_end; ++y) {
    WithTaps(rows.count,
             [&](auto taps) { ResizeRow<V, taps>(args, rows, y, row); });
    WithTaps(columns.count,
             [&](auto taps) { ClassifyRow<V, taps>(args, columns, row, y); });
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_SEGMENTATION_ARGMAX_SIMD_H_
