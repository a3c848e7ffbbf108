#include <cstdint>

#include "kernels/detection/mask_paste_cuda.h"
#include "simt/simt.h"

// The compiler must not fuse multiplications with additions in this file (no
// contraction). Every value is therefore rounded as in MaskPasteScalar(), and
// the same pixels are set.
namespace sfmamba::kernels {
namespace {

// A mask's area is divided into bands of kRows rows. kSlices blocks compute
// each mask, whatever its size: block i computes the bands i, i + kSlices, and
// so on. Each warp computes a row of a band, kColumns pixels at a time.
constexpr int kColumns = 32;
constexpr int kRows = 8;
constexpr int kSlices = 16;

// The two mask cells that a pixel samples on one axis, and their weights.
struct Cells {
  int low, high;
  float low_weight, high_weight;  // 0 for cells outside of the mask.
};

// Returns the same cells and weights as PasteTaps() in mask_paste_cpu.cc for
// one pixel of the picture. The box extends from `begin` to `end`.
__device__ Cells CellsOf(int pixel, float begin, float end, int side) {
  const float place = (static_cast<float>(pixel) + 0.5f - begin) /
                          (end - begin) * static_cast<float>(side) -
                      0.5f;
  if (!(place > -1.0f && place < static_cast<float>(side))) {
    return {0, 0, 0.0f, 0.0f};
  }
  const float floor = floorf(place);
  const int cell = static_cast<int>(floor);
  return {max(cell, 0), min(cell + 1, side - 1),
          cell >= 0 ? 1.0f - (place - floor) : 0.0f,
          cell + 1 < side ? place - floor : 0.0f};
}

// blockIdx.x is the mask. blockIdx.y selects every kSlices-th band of the
// mask's rows.
__global__ void MaskPasteKernel(const MaskPasteArgs* masks) {
  const MaskPasteArgs& args = masks[blockIdx.x];
  const int side = args.side;
  const int left = args.area.left, width = args.area.right - left;
  const int top = args.area.top, height = args.area.bottom - top;
  for (int y = blockIdx.y * kRows + threadIdx.y; y < height;
       y += kSlices * kRows) {
    const Cells row = CellsOf(top + y, args.y1, args.y2, side);
    const float* high = args.mask + row.low * side;
    const float* low = args.mask + row.high * side;
    uint8_t* out = args.out + int64_t{y} * width;
    for (int x = threadIdx.x; x < width; x += kColumns) {
      const Cells column = CellsOf(left + x, args.x1, args.x2, side);
      const float value =
          row.low_weight * (column.low_weight * high[column.low] +
                            column.high_weight * high[column.high]) +
          row.high_weight * (column.low_weight * low[column.low] +
                             column.high_weight * low[column.high]);
      out[x] = value >= args.threshold ? 1 : 0;
    }
  }
}

}  // namespace

absl::Status MaskPasteCuda(const MaskPasteArgs* masks, int count,
                           CudaStream stream) {
  return simt::Launch("MaskPaste", MaskPasteKernel, dim3(count, kSlices),
                      dim3(kColumns, kRows), stream, masks);
}

}  // namespace sfmamba::kernels
