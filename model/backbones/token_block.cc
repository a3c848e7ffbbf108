#include "model/backbones/token_block.h"

#include "model/backbones/make_mixer.h"

namespace sfmamba::backbones {

TokenBlock::TokenBlock(const weights::StateDict::Scope& scope,
                       const model::BackboneConfig& config, int stage,
                       int block, const ops::Implementation& implementation)
    : norm1_(scope.Sub("norm1"), config.width(stage), implementation),
      norm2_(scope.Sub("norm2"), config.width(stage), implementation) {
  const int width = config.width(stage);
  at::Tensor gamma_1, gamma_2;
  if (config.layer_scale) {
    gamma_1 = scope.Take("gamma_1", {width});
    gamma_2 = scope.Take("gamma_2", {width});
  }
  mixer_ = MakeMixer(scope.Sub("mixer"), config, stage, block, gamma_1,
                     implementation);
  mlp_ =
      std::make_unique<Mlp>(scope.Sub("mlp"), width, gamma_2, implementation);
}

void TokenBlock::Forward(ops::Residual& x, int64_t length, bool swap) const {
  mixer_->AddTo(x, norm1_.Forward(x, length, swap), length);
  mlp_->AddTo(x, norm2_.Forward(x, length, /*swap=*/false));
}

void TokenBlock::ForwardPart(ops::Residual& x, int64_t first,
                             int64_t count) const {
  // The tokens that stay in x attend to all tokens, also to the dropped ones.
  // Therefore `normalized` contains all tokens.
  const at::Tensor normalized = norm1_.ForwardKeeping(x, first, count);
  mixer_->AddToPart(x, normalized, first);
  mlp_->AddTo(x, norm2_.Forward(x, count, /*swap=*/false));
}

}  // namespace sfmamba::backbones
