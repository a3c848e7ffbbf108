#ifndef SFMAMBA_MODEL_BACKBONES_VIM_MIXER_H_
#define SFMAMBA_MODEL_BACKBONES_VIM_MIXER_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/backbones/mixer.h"
#include "model/backbones/ssm_branch.h"
#include "model/layers/linear.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The mixer of Vim: scans over all channels, forward and perhaps backward, with
// causal convolutions, gated by a second half of the projection. Source: Vim
// (arXiv 2401.09417), 3.3.
class VimMixer : public Mixer {
 public:
  struct Shape {
    int width;
    int expand;     // Scanned channels for each channel of the width.
    bool backward;  // Whether the mean of both directions is taken.
  };

  // gamma [width] is the layer scale of the result, or undefined.
  VimMixer(const weights::StateDict::Scope& scope, const Shape& shape,
           const at::Tensor& gamma, const layers::LayerOptions& options);

  void AddTo(layers::Residual& residual, const at::Tensor& x,
             int64_t length) const override;

 private:
  int channels_;  // Of the scan.
  layers::Linear in_proj_, out_proj_;
  SsmBranch forward_;
  std::optional<SsmBranch> backward_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_VIM_MIXER_H_
