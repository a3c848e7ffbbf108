#ifndef SFMAMBA_BASE_BICUBIC_FILTER_H_
#define SFMAMBA_BASE_BICUBIC_FILTER_H_

#include <cstdint>
#include <vector>

namespace sfmamba::base {

// Computes the weights by which Pillow's bicubic filter resizes one side of a
// picture. They equal Pillow's bit for bit. The filter is Keys' cubic with a =
// -0.5, which is widened if the side shrinks. The weights are fixed-point
// numbers. Source: docs/network.md, "Preprocessing"; Pillow's published
// resampling.
//
// Thread-compatible.
class BicubicFilter {
 public:
  static constexpr int kFractionBits = 22;

  // The consecutive input pixels of one output pixel and their weights.
  // weights[k] belongs to input first + k.
  struct Taps {
    int first = 0;
    std::vector<int32_t> weights;  // In units of 2^-kFractionBits.
  };

  // Resizes a side from `in` to `out` pixels. Both are positive.
  BicubicFilter(int in, int64_t out);

  // Returns an upper bound of the number of input pixels of one output pixel.
  int most_taps() const;
  // Sets `taps` to the input pixels of output pixel i, 0 <= i < out, and to
  // their weights.
  void TapsOf(int64_t i, Taps* taps);

 private:
  const int in_;
  const double scale_;    // Input pixels per output pixel.
  const double widened_;  // The factor by which the cubic is widened.
  std::vector<double> exact_;
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_BICUBIC_FILTER_H_
