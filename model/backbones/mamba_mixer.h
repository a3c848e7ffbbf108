#ifndef SFMAMBA_MODEL_BACKBONES_MAMBA_MIXER_H_
#define SFMAMBA_MODEL_BACKBONES_MAMBA_MIXER_H_

#include <optional>

#include "ATen/core/Tensor.h"
#include "model/backbones/mixer.h"
#include "model/backbones/ssm_branch.h"
#include "model/config.h"
#include "model/layers/linear.h"
#include "model/layers/short_convolution.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// The mixer of MambaVision. One half of the channels goes through a convolution
// and the selective scan. The other half goes through a convolution only. dt's
// bias is added twice, as in MambaVision. Source: MambaVision (arXiv
// 2407.08083), 3.3.
class MambaMixer : public Mixer {
 public:
  // `gamma` [width] is the layer scale of the result, or undefined. With the
  // scan mode kParallelCat, half of the scanned channels are scanned backward.
  // With kParallelAdd, a second branch scans all of them backward, and its
  // result is added. The names of its parameters end with "_b". Other scan
  // modes are treated as kUni.
  MambaMixer(const weights::StateDict::Scope& scope, int width,
             model::ScanMode scan, const at::Tensor& gamma,
             const ops::Implementation& implementation);

  void AddTo(ops::Residual& residual, const at::Tensor& x,
             int64_t length) const override;

 private:
  int half_;  // The number of scanned channels.
  layers::Linear in_proj_, out_proj_;
  layers::ShortConvolution conv_;  // Convolves both halves of the channels.
  SsmBranch forward_;
  std::optional<ConvolvedSsmBranch> backward_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MAMBA_MIXER_H_
