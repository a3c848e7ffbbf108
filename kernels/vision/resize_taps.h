#ifndef SFMAMBA_KERNELS_VISION_RESIZE_TAPS_H_
#define SFMAMBA_KERNELS_VISION_RESIZE_TAPS_H_

#include <vector>

namespace sfmamba::kernels {

// A line of samples after two bilinear resizes, as sums of the samples before:
//   out[i] = sum over t < count of weight[i*count + t] * in[index[i*count + t]]
// Both resizes have half-pixel centres: source = max((i + 0.5) * in / out -
// 0.5, 0) in fp32, neighbours clamped. One between equal sizes changes nothing.
struct ResizeTaps {
  // The samples that the neediest i depends on, 1 to 4. Where there are fewer,
  // the rest have weight 0 and an index that the sum has anyway.
  int count;
  std::vector<int> index;     // [out_size, count]
  std::vector<float> weight;  // [out_size, count]
};

// Of a resize from `size` to `middle_size` and on to `out_size`, all positive.
ResizeTaps ComposeResizes(int size, int middle_size, int out_size);

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_KERNELS_VISION_RESIZE_TAPS_H_
