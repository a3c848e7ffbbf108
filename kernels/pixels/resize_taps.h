#ifndef SFMAMBA_KERNELS_PIXELS_RESIZE_TAPS_H_
#define SFMAMBA_KERNELS_PIXELS_RESIZE_TAPS_H_

#include <vector>

namespace sfmamba::kernels {

// Two bilinear resizes of a line of samples, one after the other. Each output
// is a weighted sum of the original samples:
//   out[i] = sum over t < count of weight[i*count + t] * in[index[i*count + t]]
// Both resizes have half-pixel centres: source = max((i + 0.5) * in / out -
// 0.5, 0) in fp32, with neighbours clamped to the line. A resize between equal
// sizes changes nothing.
struct ResizeTaps {
  // The maximum number of samples that an output depends on, 1 to 4. Outputs
  // that depend on fewer samples repeat an index with weight 0.
  int count;
  std::vector<int> index;     // [out_size, count]
  std::vector<float> weight;  // [out_size, count]
};

// Returns the combination of a resize from `size` to `middle_size` samples and
// a resize from `middle_size` to `out_size` samples. All sizes must be
// positive.
ResizeTaps ComposeResizes(int size, int middle_size, int out_size);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_PIXELS_RESIZE_TAPS_H_
