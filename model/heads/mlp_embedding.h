#ifndef SFMAMBA_MODEL_HEADS_MLP_EMBEDDING_H_
#define SFMAMBA_MODEL_HEADS_MLP_EMBEDDING_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/config.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::heads {

// The layers of MambaOut between the mean of the last map and the classes. They
// are a LayerNorm, a linear layer, a GELU and another LayerNorm. If
// MambaOutConfig::rw is set, the last LayerNorm is missing. All are computed in
// fp32. Immutable, so thread-safe.
class MlpEmbedding {
 public:
  // Takes "norm.*" and "pre_logits.*" from `scope`.
  MlpEmbedding(const model::ModelConfig& config,
               const weights::StateDict::Scope& scope,
               const ops::Implementation& implementation);

  // Maps [N, feature width], fp32, to [N, embedding width], fp32.
  at::Tensor Forward(const at::Tensor& pooled) const;

 private:
  layers::LayerNorm first_norm_;
  layers::Linear linear_;
  std::optional<layers::LayerNorm> last_norm_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_MLP_EMBEDDING_H_
