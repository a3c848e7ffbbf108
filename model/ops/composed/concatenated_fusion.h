#ifndef SFMAMBA_MODEL_OPS_COMPOSED_CONCATENATED_FUSION_H_
#define SFMAMBA_MODEL_OPS_COMPOSED_CONCATENATED_FUSION_H_

#include <memory>
#include <vector>

#include "model/ops/implementation.h"

namespace sfmamba::ops {

// Fuses the maps of a pyramid in separate steps. It resizes and concatenates
// the maps, then applies an implementation's convolution.
class ConcatenatedFusion : public PyramidFusionOp {
 public:
  ConcatenatedFusion(const Implementation& implementation,
                     const PyramidFusionParameters& parameters);

  at::Tensor Forward(const std::vector<at::Tensor>& maps) const override;

 private:
  std::unique_ptr<const ConvolutionOp> convolution_;
};

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_COMPOSED_CONCATENATED_FUSION_H_
