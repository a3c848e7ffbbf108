#ifndef SFMAMBA_MODEL_MAMBA_MIXER_H_
#define SFMAMBA_MODEL_MAMBA_MIXER_H_

#include "ATen/core/Tensor.h"
#include "model/linear.h"
#include "model/mixer.h"
#include "model/ops.h"
#include "model/state_dict.h"

namespace sfmamba {

// The MambaVision mixer: half of the channels pass a convolution and the
// selective scan, half the convolution only. Source: MambaVision (arXiv
// 2407.08083), 3.3; the dt bias counts twice there, and so it does here.
class MambaMixer : public Mixer {
 public:
  static constexpr int kStates = 8;

  // gamma [width] is the layer scale of the result, or undefined.
  MambaMixer(const StateDict::Scope& scope, int width, const at::Tensor& gamma,
             const LayerOptions& options);

  void AddTo(at::Tensor& residual, const at::Tensor& x,
             int64_t length) const override;

 private:
  // in_proj's result [rows, tokens, width] to out_proj's input, by our kernels
  // and by libtorch's operators.
  at::Tensor Fused(const at::Tensor& xz, int64_t length) const;
  at::Tensor Plain(const at::Tensor& xz, int64_t length) const;

  bool fuse_;
  int half_;  // Channels of the scan.
  int rank_;  // Of the projection that gives dt.
  Linear in_proj_, x_proj_, dt_proj_, out_proj_;
  at::Tensor conv_x_, conv_z_;  // [3, half]
  ops::Scan scan_;              // Its bias is twice dt_proj's.
};

}  // namespace sfmamba

#endif  // SFMAMBA_MODEL_MAMBA_MIXER_H_
