#ifndef SFMAMBA_MODEL_BACKBONES_VIM_MIXER_H_
#define SFMAMBA_MODEL_BACKBONES_VIM_MIXER_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/backbones/mixer.h"
#include "model/backbones/ssm_branch.h"
#include "model/layers/linear.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The mixer of Vim. After a causal convolution, all channels are scanned
// forward, and optionally backward too. The input projection also computes a
// gate, by which the result is multiplied. Source: Vim (arXiv 2401.09417), 3.3.
class VimMixer : public Mixer {
 public:
  struct Shape {
    int width;
    int expand;     // The number of scanned channels divided by the width.
    bool backward;  // If true, the result is the mean of both directions.
  };

  // `gamma` [width] is the layer scale of the result, or undefined.
  VimMixer(const weights::StateDict::Scope& scope, const Shape& shape,
           const at::Tensor& gamma, const ops::Implementation& implementation);

  void AddTo(ops::Residual& residual, const at::Tensor& x,
             int64_t length) const override;

 private:
  int channels_;  // The number of scanned channels.
  layers::Linear in_proj_, out_proj_;
  ConvolvedSsmBranch forward_;
  std::optional<ConvolvedSsmBranch> backward_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_VIM_MIXER_H_
