#include <optional>

#include "ATen/ops/batch_norm.h"
#include "model/ops/composed/concatenated_fusion.h"
#include "model/ops/reference/reference_implementation.h"

namespace sfmamba::ops {
namespace {

class ReferencePooling : public PoolingOp {
 public:
  explicit ReferencePooling(const PoolingParameters& parameters)
      : norm_(parameters.norm) {}

  at::Tensor Forward(const at::Tensor& map) const override {
    if (!norm_.has_value()) return map.mean({2, 3});
    return at::batch_norm(map, norm_->weight, norm_->bias, norm_->mean,
                          norm_->var, /*training=*/false, /*momentum=*/0,
                          norm_->eps, /*cudnn_enabled=*/false)
        .mean({2, 3});
  }

 private:
  std::optional<BatchNorm> norm_;
};

}  // namespace

std::unique_ptr<PoolingOp> ReferenceImplementation::MakePooling(
    const PoolingParameters& parameters) const {
  return std::make_unique<ReferencePooling>(parameters);
}

std::unique_ptr<PyramidFusionOp> ReferenceImplementation::MakePyramidFusion(
    const PyramidFusionParameters& parameters) const {
  return std::make_unique<ConcatenatedFusion>(*this, parameters);
}

void ReferenceImplementation::ForEachPart(
    int64_t count, int64_t /*size*/,
    absl::FunctionRef<void(int64_t first, int64_t count)> body) const {
  body(0, count);
}

}  // namespace sfmamba::ops
