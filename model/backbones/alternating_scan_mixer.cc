#include "model/backbones/alternating_scan_mixer.h"

#include <utility>

#include "ATen/ops/cat.h"
#include "ATen/ops/zeros.h"
#include "model/backbones/ssm_branch.h"

namespace sfmamba::backbones {

AlternatingScanMixer::AlternatingScanMixer(std::unique_ptr<Mixer> mixer,
                                           bool reversed, bool mean_token)
    : mixer_(std::move(mixer)), reversed_(reversed), mean_token_(mean_token) {}

void AlternatingScanMixer::AddTo(ops::Residual& residual, const at::Tensor& x,
                                 int64_t length) const {
  const int64_t rows = x.size(0), width = x.size(2);
  at::Tensor seen = reversed_ ? Reversed(x, length) : x;
  int64_t seen_length = length;
  if (mean_token_) {
    // The mean of the tokens comes first. The state of the scan has then seen
    // all tokens before it reaches the first one.
    seen = seen.view({-1, length, width});
    seen = at::cat({seen.mean(1, /*keepdim=*/true), seen}, 1);
    seen = seen.view({rows, -1, width});
    ++seen_length;
  }
  at::Tensor& sum = residual.Sum();
  // The mixer's result cannot be added to the residual stream directly. First,
  // the result for the mean must be dropped, and reversed sequences must be
  // reversed again. So the mixer adds its result to zeros.
  ops::Residual own(at::zeros(seen.sizes(), sum.options()));
  mixer_->AddTo(own, seen, seen_length);
  at::Tensor y = own.Sum();
  if (mean_token_) {
    y = y.view({-1, seen_length, width}).narrow(1, 1, length);
    y = y.reshape(x.sizes());
  }
  sum.add_(reversed_ ? Reversed(y, length) : y);
}

}  // namespace sfmamba::backbones
