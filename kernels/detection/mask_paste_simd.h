// Pastes masks by vectors of type V, one pixel per lane. mask_paste_isa.cc
// includes this header and is compiled once for each instruction set, with a
// different V.
#ifndef SFMAMBA_KERNELS_DETECTION_MASK_PASTE_SIMD_H_
#define SFMAMBA_KERNELS_DETECTION_MASK_PASTE_SIMD_H_

#include "kernels/detection/mask_paste.h"
#include "kernels/simd/simd_math.h"

namespace sfmamba::kernels {
namespace {

// Resizes rows of the mask to columns [begin, begin + count) of the area.
// Caches the last two resized rows, because neighbouring pixel rows sample the
// same mask rows.
class StretchedRows {
 public:
  static constexpr int kMaxColumns = 256;

  StretchedRows(const MaskPasteArgs& args, const ResizeTaps& columns, int begin,
                int count)
      : args_(args),
        index_(columns.index.data() + 2 * begin),
        weight_(columns.weight.data() + 2 * begin),
        count_(count) {}

  // Returns the resized mask row, [count]. The values stay valid after the next
  // call of Get() if that call asks for a neighbouring row.
  const float* Get(int mask_row) {
    const int slot = mask_row % 2;
    if (kept_[slot] != mask_row) {
      Stretch(args_.mask + mask_row * args_.side, values_[slot]);
      kept_[slot] = mask_row;
    }
    return values_[slot];
  }

 private:
  void Stretch(const float* cells, float* values) const {
    for (int x = 0; x < count_; ++x) {
      values[x] = weight_[2 * x] * cells[index_[2 * x]] +
                  weight_[2 * x + 1] * cells[index_[2 * x + 1]];
    }
  }

  const MaskPasteArgs& args_;
  const int* index_;
  const float* weight_;
  const int count_;
  int kept_[2] = {-1, -1};
  float values_[2][kMaxColumns];
};

template <typename V>
void PasteColumns(const MaskPasteArgs& args, const ResizeTaps& columns,
                  const ResizeTaps& rows, int begin, int count) {
  StretchedRows stretched(args, columns, begin, count);
  const V threshold = V::Set(args.threshold);
  for (int y = 0; y < args.area.height(); ++y) {
    const float* high = stretched.Get(rows.index.data()[2 * y]);
    const float* low = stretched.Get(rows.index.data()[2 * y + 1]);
    const V high_weight = V::Set(rows.weight.data()[2 * y]);
    const V low_weight = V::Set(rows.weight.data()[2 * y + 1]);
    uint8_t* out = args.out + int64_t{y} * args.area.width() + begin;
    ForEachVector<V>(count, [&](int64_t x, int lanes) {
      const V value = high_weight * LoadLanes<V>(high + x, lanes) +
                      low_weight * LoadLanes<V>(low + x, lanes);
      const typename V::Mask set = LessEqual(threshold, value);
      if (lanes == V::kWidth) return V::StoreFlags(set, out + x);
      uint8_t flags[V::kWidth];
      V::StoreFlags(set, flags);
      for (int i = 0; i < lanes; ++i) out[x + i] = flags[i];
    });
  }
}

template <typename V>
void Paste(const MaskPasteArgs& args, const ResizeTaps& columns,
           const ResizeTaps& rows) {
  const int width = args.area.width();
  for (int begin = 0; begin < width; begin += StretchedRows::kMaxColumns) {
    const int rest = width - begin;
    PasteColumns<V>(
        args, columns, rows, begin,
        rest < StretchedRows::kMaxColumns ? rest : StretchedRows::kMaxColumns);
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_DETECTION_MASK_PASTE_SIMD_H_
