#ifndef SFMAMBA_BASE_BICUBIC_FILTER_H_
#define SFMAMBA_BASE_BICUBIC_FILTER_H_

#include <cstdint>
#include <vector>

namespace sfmamba::base {

// The weights by which Pillow's bicubic filter resizes a side of a picture, to
// the bit: Keys' cubic with a = -0.5, widened where the side shrinks, in fixed
// point. Source: docs/network.md, "Preprocessing"; Pillow's published
// resampling.
//
// Thread-compatible.
class BicubicFilter {
 public:
  static constexpr int kFractionBits = 22;

  // The inputs that make one output, from `first` on.
  struct Taps {
    int first = 0;
    std::vector<int32_t> weights;  // In units of 2^-kFractionBits.
  };

  // From `in` to `out` pixels; both are positive.
  BicubicFilter(int in, int64_t out);

  // No output is made of more inputs.
  int most_taps() const;
  // Sets `taps` to those of output i, 0 <= i < out.
  void TapsOf(int64_t i, Taps* taps);

 private:
  const int in_;
  const double scale_;    // Inputs for each output.
  const double widened_;  // What the cubic is widened by.
  std::vector<double> exact_;
};

}  // namespace sfmamba::base

#endif  // SFMAMBA_BASE_BICUBIC_FILTER_H_
