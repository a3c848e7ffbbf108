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

// The MambaVision mixer: half of the channels pass a convolution and the
// selective scan, half the convolution only. Source: MambaVision (arXiv
// 2407.08083), 3.3; the dt bias counts twice there, and so it does here.
class MambaMixer : public Mixer {
 public:
  // gamma [width] is the layer scale of the result, or undefined. `scan` is
  // kUni, or else kParallelCat (half of the scanned channels are scanned from
  // the sequences' ends) or kParallelAdd (a second path of parameters "..._b"
  // reads from the ends, and its answer is added).
  MambaMixer(const weights::StateDict::Scope& scope, int width,
             model::ScanMode scan, const at::Tensor& gamma,
             const layers::LayerOptions& options);

  void AddTo(layers::Residual& residual, const at::Tensor& x,
             int64_t length) const override;

 private:
  int half_;  // Channels of the scan.
  layers::Linear in_proj_, out_proj_;
  SsmBranch forward_;
  std::optional<SsmBranch> backward_;
  layers::ShortConvolution conv_z_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MAMBA_MIXER_H_
