#ifndef SFMAMBA_MODEL_BACKBONES_ATTENTION_H_
#define SFMAMBA_MODEL_BACKBONES_ATTENTION_H_

#include "ATen/core/Tensor.h"
#include "model/backbones/mixer.h"
#include "model/layers/linear.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// Multi-head softmax attention over the tokens of each sequence, without a
// mask. The residual [sequences, tokens, width] may contain only some tokens of
// each sequence. Then the result is computed only for these tokens, which still
// attend to all tokens of x.
class Attention : public Mixer {
 public:
  // `gamma` [width] is the layer scale of the result, or undefined.
  Attention(const weights::StateDict::Scope& scope, int width, int heads,
            const at::Tensor& gamma, const ops::Implementation& implementation);

  void AddTo(ops::Residual& residual, const at::Tensor& x,
             int64_t length) const override;
  void AddToPart(ops::Residual& residual, const at::Tensor& x,
                 int64_t first) const override;

 private:
  // Computes the result of tokens [first, first + count) of each sequence and
  // adds it to `residual`.
  void AddTokens(ops::Residual& residual, const at::Tensor& x, int64_t length,
                 int64_t first, int64_t count) const;

  const ops::Implementation& implementation_;
  int heads_;
  layers::Linear qkv_, proj_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_ATTENTION_H_
