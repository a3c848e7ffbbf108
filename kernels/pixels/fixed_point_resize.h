#ifndef SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_H_
#define SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Resizes 8-bit RGB pictures in a horizontal and a vertical pass. Both passes
// use weights in fixed point:
//   out = clamp((2^21 + sum over k of weight[k] * in[first + k]) >> 22, 0, 255)
// The sums are exact, so all instruction sets write the same bytes.
// Source: docs/network.md, "Preprocessing"; Pillow's published resampling.

constexpr int kWeightFractionBits = 22;

// The inputs of each output pixel along a row or a column, and the weights of
// these inputs.
class FixedPointTaps {
 public:
  // There are `outputs` outputs, each of which has at most `max_count` inputs.
  FixedPointTaps(int outputs, int max_count);

  // Makes output i the weighted sum of the inputs first .. first + count - 1.
  // The absolute values of the weights must add up to less than 2^23, so that
  // no sum overflows. In fixed point, 2^22 is the weight 1.
  void Set(int i, int first, const int32_t* weights, int count);

  int outputs() const { return first_.size(); }
  int max_count() const { return stride_; }  // Rounded up to a multiple of 4.
  int first(int i) const { return first_[i]; }
  int count(int i) const { return count_[i]; }
  int end(int i) const { return first_[i] + count_[i]; }
  // Returns the weights of output i, [count(i)], followed by zeros up to the
  // next multiple of 4.
  const int32_t* weights(int i) const {
    return &weights_[size_t{1} * i * stride_];
  }
  // Returns the weights of output i, split for 16-bit multiplications. Element
  // 2j has the upper parts of the weights of inputs 2j and 2j + 1, as two
  // int16. Element 2j + 1 has the lower kLowBits bits of these weights. Like
  // weights(i), the elements are padded to a multiple of 4.
  const int32_t* parts(int i) const { return &parts_[size_t{1} * i * stride_]; }

  static constexpr int kLowBits = 11;

 private:
  int stride_;  // A multiple of 4.
  std::vector<int> first_;
  std::vector<int> count_;
  std::vector<int32_t> weights_;  // [outputs, stride_]
  std::vector<int32_t> parts_;    // [outputs, stride_]
};

// Returns how many bytes ResizeRows() may read from the start of a row. The row
// can have fewer bytes, because ResizeRows() reads four pixels as 16 bytes.
size_t ReadableRowBytes(const FixedPointTaps& taps);

// The horizontal pass, which resizes kRowsAtOnce rows.
struct ResizeRowsArgs {
  static constexpr int kRowsAtOnce = 4;

  const FixedPointTaps* taps;
  // The input rows, [pixels, 3] each. ReadableRowBytes() bytes of each row must
  // be readable. Several elements of `in` may point to the same row, for
  // example if a picture has fewer than kRowsAtOnce rows left.
  const uint8_t* in[kRowsAtOnce];
  // [taps->outputs(), 3] each, written. Two elements may point to the same
  // output row only if their elements of `in` point to the same input row.
  uint8_t* out[kRowsAtOnce];
};

// The vertical pass, which computes one output row of `size` bytes from several
// input rows.
struct CombineRowsArgs {
  const FixedPointTaps* taps;
  int output;                // The index of the output row in `taps`.
  const uint8_t* const* in;  // [taps->count(output)] rows
  int size;
  uint8_t* out;  // [size], written; not one of `in`
};

// Both functions run on the calling thread.
void ResizeRows(const ResizeRowsArgs& args, CpuIsa isa = ActiveCpuIsa());
void CombineRows(const CombineRowsArgs& args, CpuIsa isa = ActiveCpuIsa());

// ResizeRows() and CombineRows() call these, depending on the instruction set.
void ResizeRowsScalar(const ResizeRowsArgs& args);
void ResizeRowsAvx2(const ResizeRowsArgs& args);
void ResizeRowsAvx512(const ResizeRowsArgs& args);
void CombineRowsScalar(const CombineRowsArgs& args);
void CombineRowsAvx2(const CombineRowsArgs& args);
void CombineRowsAvx512(const CombineRowsArgs& args);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_H_
