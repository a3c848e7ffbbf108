#include "model/layers/short_convolution.h"

namespace sfmamba::layers {

ShortConvolution::Part ShortConvolution::Take(
    const weights::StateDict::Scope& scope, const Shape& shape) {
  // The operators read weights [taps, channels]. In this order, neighbouring
  // channels fill a vector register.
  Part part{scope.Take("weight", {shape.channels, 1, shape.taps})
                .view({shape.channels, shape.taps})
                .t()
                .contiguous(),
            {}};
  if (shape.bias) part.bias = scope.Take("bias", {shape.channels});
  return part;
}

}  // namespace sfmamba::layers
