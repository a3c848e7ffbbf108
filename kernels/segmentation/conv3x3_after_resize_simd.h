// Computes the resized 3x3 convolution by vectors of type V, one channel per
// lane. conv3x3_after_resize_isa.cc includes this header and is compiled once
// for each instruction set, with a different V.
//
// Computes one row of y at a time. The vertical resize comes first and is done
// once for each column of the small map. The horizontal resize then uses each
// of these results for several pixels of the row of y.
#ifndef SFMAMBA_KERNELS_SEGMENTATION_CONV3X3_AFTER_RESIZE_SIMD_H_
#define SFMAMBA_KERNELS_SEGMENTATION_CONV3X3_AFTER_RESIZE_SIMD_H_

#include <cstdint>

#include "kernels/segmentation/conv3x3_after_resize.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// The terms of a weighted sum of samples. A row or a column of the convolution
// has three taps, and each tap is interpolated between at most two samples.
// There are therefore at most six terms.
struct Terms {
  int count = 0;
  const float* values[6];
  float weights[6];

  // Adds the terms whose sum is element i of a resized line. `resize` resizes
  // the line. The samples of the original line begin at `line` and are `stride`
  // values apart.
  void Add(const ResizeTaps& resize, int i, const float* line, int64_t stride) {
    for (int k = i * resize.count; k < (i + 1) * resize.count; ++k) {
      values[count] = line + resize.index[k] * stride;
      weights[count++] = resize.weight[k];
    }
  }
};

template <typename V>
V AddTerms(const Terms& terms, int64_t c, int lanes, V sum) {
  for (int k = 0; k < terms.count; ++k) {
    sum = Fma(V::Set(terms.weights[k]),
              LoadLanes<V>(terms.values[k] + c, lanes), sum);
  }
  return sum;
}

// Computes row `row` of y for at most kResizedConv3x3Block channels, which
// begin with channel `first`.
template <typename V>
void Row(const Conv3x3AfterResizeArgs& args, const ResizeTaps& rows,
         const ResizeTaps& columns, int row, int first, float* scratch) {
  const int left = args.channels - first;
  const int count = left < kResizedConv3x3Block ? left : kResizedConv3x3Block;
  const int64_t pixel = int64_t{9} * args.channels;
  const int64_t column = 3 * kResizedConv3x3Block;
  for (int x = 0; x < args.in_width; ++x) {
    for (int j = 0; j < 3; ++j) {
      Terms terms;
      for (int i = 0; i < 3; ++i) {
        const int r = row + i - 1;
        if (r < 0 || r >= args.height) continue;
        terms.Add(rows, r,
                  args.taps + x * pixel + (3 * i + j) * args.channels + first,
                  args.in_width * pixel);
      }
      float* sums = scratch + x * column + j * kResizedConv3x3Block;
      ForEachVector<V>(count, [&](int64_t c, int lanes) {
        StoreLanes(AddTerms(terms, c, lanes, V::Set(0.0f)), sums + c, lanes);
      });
    }
  }
  float* y = args.y + int64_t{row} * args.width * args.channels + first;
  for (int x = 0; x < args.width; ++x, y += args.channels) {
    Terms terms;
    for (int j = 0; j < 3; ++j) {
      const int c = x + j - 1;
      if (c < 0 || c >= args.width) continue;
      terms.Add(columns, c, scratch + j * kResizedConv3x3Block, column);
    }
    ForEachVector<V>(count, [&](int64_t c, int lanes) {
      StoreLanes(AddTerms(terms, c, lanes, LoadLanes<V>(y + c, lanes)), y + c,
                 lanes);
    });
  }
}

template <typename V>
void Conv3x3AfterResize(const Conv3x3AfterResizeArgs& args,
                        const ResizeTaps& rows, const ResizeTaps& columns,
                        float* scratch) {
  for (int row = args.row_begin; row < args.row_end; ++row) {
    for (int c = 0; c < args.channels; c += kResizedConv3x3Block) {
      Row<V>(args, rows, columns, row, c, scratch);
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_SEGMENTATION_CONV3X3_AFTER_RESIZE_SIMD_H_
