#include "model/backbones/token_block.h"

#include "ATen/ops/layer_norm.h"
#include "model/backbones/auxiliary_tokens.h"
#include "model/backbones/make_mixer.h"
#include "model/ops/compute_type.h"
#include "model/ops/ops.h"

namespace sfmamba::backbones {

TokenBlock::TokenBlock(const weights::StateDict::Scope& scope,
                       const model::BackboneConfig& config, int stage,
                       int block, const layers::LayerOptions& options)
    : fuse_(options.fuse),
      norm1_(TakeNorm(scope.Sub("norm1"), config.width(stage))),
      norm2_(TakeNorm(scope.Sub("norm2"), config.width(stage))) {
  norm_type_ = ops::OnDevice(norm1_.gamma) ? ops::ComputeType(options.precision)
                                           : at::kFloat;
  const int width = config.width(stage);
  at::Tensor gamma_1, gamma_2;
  if (config.layer_scale) {
    gamma_1 = scope.Take("gamma_1", {width});
    gamma_2 = scope.Take("gamma_2", {width});
  }
  mixer_ =
      MakeMixer(scope.Sub("mixer"), config, stage, block, gamma_1, options);
  mlp_ = std::make_unique<Mlp>(scope.Sub("mlp"), width, gamma_2, options);
}

TokenBlock::Norm TokenBlock::TakeNorm(const weights::StateDict::Scope& scope,
                                      int width) {
  return {scope.Take("weight", {width}), scope.Take("bias", {width})};
}

at::Tensor TokenBlock::Normalized(const Norm& norm, layers::Residual& x,
                                  int64_t length, bool swap) const {
  if (fuse_) {
    return x.Normalized(norm.gamma, norm.beta, length, swap, norm_type_);
  }
  at::Tensor& sum = x.Sum();
  if (swap) sum = SwapEnds(sum, length);
  return at::layer_norm(sum, {sum.size(-1)}, norm.gamma, norm.beta);
}

void TokenBlock::Forward(layers::Residual& x, int64_t length, bool swap) const {
  mixer_->AddTo(x, Normalized(norm1_, x, length, swap), length);
  mlp_->AddTo(x, Normalized(norm2_, x, length, false));
}

void TokenBlock::ForwardFirst(layers::Residual& x, int64_t count) const {
  const int64_t length = x.sizes()[1];
  const at::Tensor normalized = Normalized(norm1_, x, length, false);
  x = layers::Residual(x.Sum().narrow(1, 0, count).contiguous());
  mixer_->AddTo(x, normalized, length);
  mlp_->AddTo(x, Normalized(norm2_, x, count, false));
}

}  // namespace sfmamba::backbones
