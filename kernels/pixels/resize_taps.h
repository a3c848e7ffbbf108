#ifndef SFMAMBA_KERNELS_PIXELS_RESIZE_TAPS_H_
#define SFMAMBA_KERNELS_PIXELS_RESIZE_TAPS_H_

#include <vector>

namespace sfmamba::kernels {

// Two bilinear resizes of a line of samples, one after the other, as weighted
// sums of the original samples:
//   out[i] = sum over t < count of weight[i*count + t] * in[index[i*count + t]]
// Both resizes have half-pixel centres: source = max((i + 0.5) * in / out -
// 0.5, 0) in fp32, with neighbours clamped to the line. A resize between equal
// sizes changes nothing.
struct ResizeTaps {
  // The most samples that any output depends on, 1 to 4. Outputs that depend on
  // fewer repeat an index with weight 0.
  int count;
  std::vector<int> index;     // [out_size, count]
  std::vector<float> weight;  // [out_size, count]
};

// Composes a resize from `size` to `middle_size` with one from there to
// `out_size`. All sizes are positive.
ResizeTaps ComposeResizes(int size, int middle_size, int out_size);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_RESIZE_TAPS_H_
