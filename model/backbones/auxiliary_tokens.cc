#include "model/backbones/auxiliary_tokens.h"

#include "ATen/ops/cat.h"
#include "ATen/ops/empty.h"
#include "model/ops/ops.h"

namespace sfmamba::backbones {

AuxiliaryTokens::AuxiliaryTokens(const weights::StateDict::Scope& scope,
                                 int width, const model::BackboneConfig& config,
                                 bool fuse)
    : tokens_(config.tokens), swap_(config.swap), fuse_(fuse) {
  if (tokens_ == model::Tokens::kLearnable) {
    head_ = scope.Take("aux_head", {1, 1, width});
    tail_ = scope.Take("aux_tail", {1, 1, width});
  }
}

at::Tensor AuxiliaryTokens::Attach(const at::Tensor& x) const {
  const int64_t count = x.size(0), length = x.size(1), width = x.size(2);
  if (tokens_ == model::Tokens::kLearnable) {
    return at::cat(
        {head_.expand({count, 1, width}), x, tail_.expand({count, 1, width})},
        1);
  }
  if (tokens_ == model::Tokens::kNone) return x;
  if (!fuse_) {
    const at::Tensor mean = x.mean(1, /*keepdim=*/true);
    return at::cat({mean, x, mean}, 1);
  }
  at::Tensor y = at::empty({count, length + 2, width}, x.options());
  y.narrow(1, 1, length).copy_(x);
  ops::FillEndsWithMean(y);
  return y;
}

void AuxiliaryTokens::Fill(at::Tensor& x) const {
  if (tokens_ == model::Tokens::kData) {
    ops::FillEndsWithMean(x);
  } else {
    x.narrow(1, 0, 1).copy_(head_);
    x.narrow(1, x.size(1) - 1, 1).copy_(tail_);
  }
}

at::Tensor AuxiliaryTokens::Detach(const at::Tensor& x) {
  return x.narrow(1, 1, x.size(1) - 2).contiguous();
}

at::Tensor SwapEnds(const at::Tensor& x, int64_t length) {
  const at::Tensor sequences = x.view({-1, length, x.size(-1)});
  const at::Tensor head = sequences.narrow(1, 0, 1);
  const at::Tensor tail = sequences.narrow(1, length - 1, 1);
  const at::Tensor middle = sequences.narrow(1, 1, length - 2);
  return at::cat({tail, middle, head}, 1).view(x.sizes());
}

}  // namespace sfmamba::backbones
