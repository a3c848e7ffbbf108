// Resizes pictures with fixed-point weights. The functions compute with vector
// registers of type B, which is Bytes8 or Bytes16. fixed_point_resize_isa.cc
// includes this header and is compiled once for each instruction set, with a
// different B.
//
// 16-bit multiplications are the fastest, but a weight has too many bits for
// them. Therefore, the upper and the lower parts of the weights are multiplied
// separately, and the two sums are combined at the end.
#ifndef SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_SIMD_H_
#define SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_SIMD_H_

#include <cstring>

#include "kernels/pixels/fixed_point_resize.h"

namespace sfmamba::kernels {
namespace {

// Weighted sums of pixels, one for the upper and one for the lower parts of the
// weights, with 32 bits each.
template <typename B>
struct SplitSum {
  B high = B::Zero(), low = B::Zero();

  // `pixels` has two 16-bit values for each sum.
  void Add(B pixels, B high_weights, B low_weights) {
    high = Add32(high, MultiplyAddPairs(pixels, high_weights));
    low = Add32(low, MultiplyAddPairs(pixels, low_weights));
  }
  // Returns the sums, rounded to integers but not yet limited to 0 .. 255.
  B Rounded() const {
    const B half = B::Set32(1 << (kWeightFractionBits - 1));
    return ShiftRight32<kWeightFractionBits>(
        Add32(Add32(ShiftLeft32<FixedPointTaps::kLowBits>(high), low), half));
  }
};

// Shuffles for 4 RGB pixels in 16 bytes. kFirstTwo puts each channel of pixels
// 0 and 1 side by side, as 16-bit values. kLastTwo does the same for pixels 2
// and 3. An index of 255 gives a zero byte.
constexpr uint8_t kFirstTwo[16] = {0, 255, 3, 255, 1,   255, 4,   255,
                                   2, 255, 5, 255, 255, 255, 255, 255};
constexpr uint8_t kLastTwo[16] = {6, 255, 9,  255, 7,   255, 10,  255,
                                  8, 255, 11, 255, 255, 255, 255, 255};
// A shuffle for 4 pixels of 4 bytes, which drops the fourth byte of each pixel.
constexpr uint8_t kWithoutFourth[16] = {0,  1,  2,  4,  5,   6,   8,   9,
                                        10, 12, 13, 14, 255, 255, 255, 255};

// Returns output i of each of B::kParts rows. Each row's output has 32 bits
// each for red, green, blue and an unused value.
template <typename B>
inline B OutputOfRows(const FixedPointTaps& taps, int i,
                      const uint8_t* const* in, B first_two, B last_two) {
  const int32_t* parts = taps.parts(i);
  SplitSum<B> sum;
  size_t offset = size_t{3} * taps.first(i);
  for (int k = 0; k < taps.count(i); k += 4, parts += 4, offset += 12) {
    const B pixels = B::LoadParts(in, offset);
    sum.Add(Shuffle(pixels, first_two), B::Set32(parts[0]), B::Set32(parts[1]));
    sum.Add(Shuffle(pixels, last_two), B::Set32(parts[2]), B::Set32(parts[3]));
  }
  return sum.Rounded();
}

// Resizes B::kParts rows.
template <typename B>
void NarrowRowsAtOnce(const FixedPointTaps& taps, const uint8_t* const* in,
                      uint8_t* const* out) {
  const B first_two = B::Repeat(kFirstTwo), last_two = B::Repeat(kLastTwo);
  const B without_fourth = B::Repeat(kWithoutFourth);
  const int outputs = taps.outputs();
  for (int i = 0; i < outputs; i += 4) {
    const int count = outputs - i < 4 ? outputs - i : 4;
    B sums[4] = {B::Zero(), B::Zero(), B::Zero(), B::Zero()};
    for (int j = 0; j < count; ++j) {
      sums[j] = OutputOfRows<B>(taps, i + j, in, first_two, last_two);
    }
    const B pixels =
        Shuffle(ToBytes(sums[0], sums[1], sums[2], sums[3]), without_fourth);
    // Stores 16 bytes per row. Later outputs overwrite the last four bytes.
    if (i + 6 <= outputs) {
      pixels.StoreParts(out, size_t{3} * i);
      continue;
    }
    uint8_t bytes[B::kBytes];
    pixels.Store(bytes);
    for (int part = 0; part < B::kParts; ++part) {
      std::memcpy(out[part] + size_t{3} * i, bytes + 16 * part, 3 * count);
    }
  }
}

template <typename B>
void NarrowRows(const ResizeRowsArgs& args) {
  for (int row = 0; row < ResizeRowsArgs::kRowsAtOnce; row += B::kParts) {
    NarrowRowsAtOnce<B>(*args.taps, args.in + row, args.out + row);
  }
}

// Returns B::kBytes bytes of the output row, which begin at byte x.
template <typename B>
inline B WeighColumns(const CombineRowsArgs& args, int x) {
  const int count = args.taps->count(args.output);
  const int32_t* parts = args.taps->parts(args.output);
  SplitSum<B> sums[4];
  for (int k = 0; k < count; k += 2, parts += 2) {
    const B a = B::Load(args.in[k] + x);
    // If there is no second row, the weight of `b` is 0.
    const B b = k + 1 < count ? B::Load(args.in[k + 1] + x) : a;
    const B high = B::Set32(parts[0]), low = B::Set32(parts[1]);
    const B halves[2] = {ZipLow(a, b), ZipHigh(a, b)};
    for (int j = 0; j < 2; ++j) {
      sums[2 * j].Add(ZipLow(halves[j], B::Zero()), high, low);
      sums[2 * j + 1].Add(ZipHigh(halves[j], B::Zero()), high, low);
    }
  }
  return ToBytes(sums[0].Rounded(), sums[1].Rounded(), sums[2].Rounded(),
                 sums[3].Rounded());
}

template <typename B>
void WeighRows(const CombineRowsArgs& args) {
  if (args.size < B::kBytes) return CombineRowsScalar(args);
  for (int x = 0; x < args.size; x += B::kBytes) {
    // If the last bytes do not fill a register, some bytes before them are
    // computed again.
    const int last = args.size - B::kBytes;
    const int begin = x < last ? x : last;
    WeighColumns<B>(args, begin).Store(args.out + begin);
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_SIMD_H_
