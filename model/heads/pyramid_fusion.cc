#include "model/heads/pyramid_fusion.h"

#include <numeric>

#include "model/layers/conv_module.h"

namespace sfmamba::heads {

PyramidFusion::PyramidFusion(const std::vector<int>& in_channels,
                             int out_channels, int size,
                             const weights::StateDict::Scope& scope,
                             const ops::Implementation& implementation) {
  const int all = std::accumulate(in_channels.begin(), in_channels.end(), 0);
  const layers::Convolution::Shape shape{all, out_channels, /*stride=*/1, size};
  op_ = implementation.MakePyramidFusion(
      {in_channels,
       layers::Convolution::Take(scope.Sub("conv"), shape, /*bias=*/false),
       ops::BatchNorm::Take(scope.Sub("bn"), out_channels,
                            layers::kConvModuleEps),
       size});
}

}  // namespace sfmamba::heads
