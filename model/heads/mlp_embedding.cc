#include "model/heads/mlp_embedding.h"

namespace sfmamba::heads {
namespace {

constexpr float kEps = 1e-6f;

// Normalises each row of x [N, C].
at::Tensor NormalizeRows(const layers::LayerNorm& norm, const at::Tensor& x) {
  return norm.ForwardMap(x.view({x.size(0), x.size(1), 1, 1})).flatten(1);
}

}  // namespace

MlpEmbedding::MlpEmbedding(const model::ModelConfig& config,
                           const weights::StateDict::Scope& scope,
                           const ops::Implementation& implementation)
    : first_norm_(scope.Sub("norm"), config.backbone.feature_width(),
                  implementation, kEps),
      linear_({layers::Linear::Take(scope.Sub("pre_logits.fc"),
                                    config.backbone.feature_width(),
                                    config.embedding_width(), /*bias=*/true),
               /*scale=*/{}, ops::Epilogue::kGelu,
               /*is_output=*/true},
              implementation) {
  if (!config.backbone.mamba_out.rw) {
    last_norm_.emplace(scope.Sub("pre_logits.norm"), config.embedding_width(),
                       implementation, kEps);
  }
}

at::Tensor MlpEmbedding::Forward(const at::Tensor& pooled) const {
  const at::Tensor y = linear_.Forward(NormalizeRows(first_norm_, pooled));
  return last_norm_.has_value() ? NormalizeRows(*last_norm_, y) : y;
}

}  // namespace sfmamba::heads
