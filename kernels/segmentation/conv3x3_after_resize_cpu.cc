#include <cstdint>
#include <vector>

#include "kernels/segmentation/conv3x3_after_resize.h"

namespace sfmamba::kernels {
namespace {

// Returns the resized product of tap `tap` and channel c at position (row,
// column) of y.
float Resized(const Conv3x3AfterResizeArgs& args, const ResizeTaps& rows,
              const ResizeTaps& columns, int row, int column, int tap, int c) {
  float sum = 0;
  for (int k = row * rows.count; k < (row + 1) * rows.count; ++k) {
    for (int l = column * columns.count; l < (column + 1) * columns.count;
         ++l) {
      const int64_t pixel =
          int64_t{rows.index[k]} * args.in_width + columns.index[l];
      sum += rows.weight[k] * columns.weight[l] *
             args.taps[(pixel * 9 + tap) * args.channels + c];
    }
  }
  return sum;
}

}  // namespace

void Conv3x3AfterResizeScalar(const Conv3x3AfterResizeArgs& args,
                              const ResizeTaps& rows, const ResizeTaps& columns,
                              float*) {
  for (int row = args.row_begin; row < args.row_end; ++row) {
    for (int column = 0; column < args.width; ++column) {
      float* y = args.y + (int64_t{row} * args.width + column) * args.channels;
      for (int tap = 0; tap < 9; ++tap) {
        const int r = row + tap / 3 - 1, c = column + tap % 3 - 1;
        if (r < 0 || r >= args.height || c < 0 || c >= args.width) continue;
        for (int channel = 0; channel < args.channels; ++channel) {
          y[channel] += Resized(args, rows, columns, r, c, tap, channel);
        }
      }
    }
  }
}

void Conv3x3AfterResizeCpu(const Conv3x3AfterResizeArgs& args, CpuIsa isa) {
  const ResizeTaps rows =
      ComposeResizes(args.in_height, args.height, args.height);
  const ResizeTaps columns =
      ComposeResizes(args.in_width, args.width, args.width);
  std::vector<float> scratch(int64_t{3} * args.in_width * kResizedConv3x3Block);
  switch (isa) {
    case CpuIsa::kScalar:
      return Conv3x3AfterResizeScalar(args, rows, columns, scratch.data());
    case CpuIsa::kAvx2:
      return Conv3x3AfterResizeAvx2(args, rows, columns, scratch.data());
    case CpuIsa::kAvx512:
      return Conv3x3AfterResizeAvx512(args, rows, columns, scratch.data());
  }
}

}  // namespace sfmamba::kernels
