#ifndef SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_H_
#define SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// The two passes of resizing 8-bit RGB pictures with weights in fixed point:
//   out = clamp((2^21 + sum over k of weight[k] * in[first + k]) >> 22, 0, 255)
// The sums are exact, so all instruction sets write the same bytes.
// Source: docs/network.md, "Preprocessing"; Pillow's published resampling.

constexpr int kWeightFractionBits = 22;

// The inputs and weights that make each output of a row or column.
class FixedPointTaps {
 public:
  // For `outputs` outputs of at most `max_count` inputs each.
  FixedPointTaps(int outputs, int max_count);

  // Output i is made of inputs first .. first + count - 1. For each output the
  // weights' magnitudes add up to less than 2^23, twice the weight 1, so that
  // no sum overflows.
  void Set(int i, int first, const int32_t* weights, int count);

  int outputs() const { return first_.size(); }
  int max_count() const { return stride_; }  // Rounded up to a multiple of 4.
  int first(int i) const { return first_[i]; }
  int count(int i) const { return count_[i]; }
  int end(int i) const { return first_[i] + count_[i]; }
  // [count(i)], and zeros up to the next multiple of 4.
  const int32_t* weights(int i) const {
    return &weights_[size_t{1} * i * stride_];
  }
  // The weights for 16-bit multiplications, two inputs at a time: for inputs 2j
  // and 2j + 1 the upper parts of their weights, then the lower kLowBits bits,
  // each two int16 in an int32. [2 * ceil(count(i) / 4) pairs]
  const int32_t* parts(int i) const { return &parts_[size_t{1} * i * stride_]; }

  static constexpr int kLowBits = 11;

 private:
  int stride_;  // A multiple of 4.
  std::vector<int> first_;
  std::vector<int> count_;
  std::vector<int32_t> weights_;  // [outputs, stride_]
  std::vector<int32_t> parts_;    // [outputs, stride_]
};

// Bytes that ResizeRows may read from a row's begin on: whole groups of four
// pixels, and the register's rest.
size_t ReadableRowBytes(const FixedPointTaps& taps);

// The horizontal pass over kRowsAtOnce rows.
struct ResizeRowsArgs {
  static constexpr int kRowsAtOnce = 4;

  const FixedPointTaps* taps;
  // Rows [pixels, 3]; ReadableRowBytes() of each can be read. Rows may be given
  // twice, together with what is written.
  const uint8_t* in[kRowsAtOnce];
  uint8_t* out[kRowsAtOnce];  // [taps->outputs(), 3] each, written
};

// The vertical pass: one row of `size` bytes of `count` rows.
struct CombineRowsArgs {
  const FixedPointTaps* taps;
  int output;                // Whose weights these are.
  const uint8_t* const* in;  // [taps->count(output)] rows
  int size;
  uint8_t* out;  // [size], written; not one of `in`
};

// Run on the calling thread.
void ResizeRows(const ResizeRowsArgs& args, CpuIsa isa = ActiveCpuIsa());
void CombineRows(const CombineRowsArgs& args, CpuIsa isa = ActiveCpuIsa());

// The two above choose among these, one per instruction set.
void ResizeRowsScalar(const ResizeRowsArgs& args);
void ResizeRowsAvx2(const ResizeRowsArgs& args);
void ResizeRowsAvx512(const ResizeRowsArgs& args);
void CombineRowsScalar(const CombineRowsArgs& args);
void CombineRowsAvx2(const CombineRowsArgs& args);
void CombineRowsAvx512(const CombineRowsArgs& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_H_
