// Resizing with fixed-point weights over a register type B, Bytes8 or Bytes16.
// The files of one instruction set include this header and choose B.
//
// A weight has too many bits for 16-bit multiplications, which are the fastest:
// its upper and its lower part are multiplied apart, and the two sums put
// together at the end.
#ifndef SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_SIMD_H_
#define SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_SIMD_H_

#include <cstring>

#include "kernels/pixels/fixed_point_resize.h"

namespace sfmamba::kernels {
namespace {

// The sums of the weights' upper and lower parts, 32 bits each.
template <typename B>
struct SplitSum {
  B high = B::Zero(), low = B::Zero();

  // `pixels` are two 16-bit pixels for each sum.
  void Add(B pixels, B high_weights, B low_weights) {
    high = Add32(high, MultiplyAddPairs(pixels, high_weights));
    low = Add32(low, MultiplyAddPairs(pixels, low_weights));
  }
  // Rounded to integers, not yet limited.
  B Rounded() const {
    const B half = B::Set32(1 << (kWeightFractionBits - 1));
    return ShiftRight32<kWeightFractionBits>(
        Add32(Add32(ShiftLeft32<FixedPointTaps::kLowBits>(high), low), half));
  }
};

// Shuffles of 4 RGB pixels in 16 bytes: put each channel of pixels 0 and 1, or
// of pixels 2 and 3, side by side in 16 bits each; 255 is a zero.
constexpr uint8_t kFirstTwo[16] = {0, 255, 3, 255, 1,   255, 4,   255,
                                   2, 255, 5, 255, 255, 255, 255, 255};
constexpr uint8_t kLastTwo[16] = {6, 255, 9,  255, 7,   255, 10,  255,
                                  8, 255, 11, 255, 255, 255, 255, 255};
// Shuffle of 4 pixels of 4 bytes: drops each pixel's fourth byte.
constexpr uint8_t kWithoutFourth[16] = {0,  1,  2,  4,  5,   6,   8,   9,
                                        10, 12, 13, 14, 255, 255, 255, 255};

// Output i of each of B::kParts rows: red, green, blue and nothing, 32 bits
// each.
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

// B::kParts rows.
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
    // 16 bytes are stored, of which later outputs overwrite four.
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

// B::kBytes columns from x on.
template <typename B>
inline B WeighColumns(const CombineRowsArgs& args, int x) {
  const int count = args.taps->count(args.output);
  const int32_t* parts = args.taps->parts(args.output);
  SplitSum<B> sums[4];
  for (int k = 0; k < count; k += 2, parts += 2) {
    const B a = B::Load(args.in[k] + x);
    // A row too many has the weight 0.
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
    // The last columns are computed again where they do not fill a register.
    const int last = args.size - B::kBytes;
    const int begin = x < last ? x : last;
    WeighColumns<B>(args, begin).Store(args.out + begin);
  }
}

}  // namespace
}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_FIXED_POINT_RESIZE_SIMD_H_
