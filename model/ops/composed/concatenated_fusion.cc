#include "model/ops/composed/concatenated_fusion.h"

#include "ATen/ops/cat.h"
#include "ATen/ops/upsample_bilinear2d.h"

namespace sfmamba::ops {

ConcatenatedFusion::ConcatenatedFusion(
    const Implementation& implementation,
    const PyramidFusionParameters& parameters)
    : convolution_(implementation.MakeConvolution(
          {parameters.weights, parameters.norm, Activation::kRelu, /*stride=*/1,
           /*groups=*/1, parameters.size})) {}

at::Tensor ConcatenatedFusion::Forward(
    const std::vector<at::Tensor>& maps) const {
  const int64_t height = maps[0].size(2), width = maps[0].size(3);
  std::vector<at::Tensor> resized = {maps[0]};
  for (size_t i = 1; i < maps.size(); ++i) {
    resized.push_back(at::upsample_bilinear2d(maps[i], {height, width},
                                              /*align_corners=*/false));
  }
  return convolution_->Forward(at::cat(resized, 1)).to(at::kFloat);
}

}  // namespace sfmamba::ops
