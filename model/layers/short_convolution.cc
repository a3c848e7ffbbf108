#include "model/layers/short_convolution.h"

namespace sfmamba::layers {

ShortConvolution::Part ShortConvolution::Take(
    const weights::StateDict::Scope& scope, const Shape& shape) {
  // The operators read [taps, channels]. The channels that fit into a vector
  // register then lie side by side.
  Part part{scope.Take("weight", {shape.channels, 1, shape.taps})
                .view({shape.channels, shape.taps})
                .t()
                .contiguous(),
            {}};
  if (shape.bias) part.bias = scope.Take("bias", {shape.channels});
  return part;
}

}  // namespace sfmamba::layers
