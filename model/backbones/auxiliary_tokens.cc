#include "model/backbones/auxiliary_tokens.h"

#include "ATen/ops/empty.h"

namespace sfmamba::backbones {

AuxiliaryTokens::AuxiliaryTokens(const weights::StateDict::Scope& scope,
                                 int width, const model::BackboneConfig& config,
                                 const ops::Implementation& implementation)
    : implementation_(implementation),
      tokens_(config.tokens),
      swap_(config.swap) {
  if (tokens_ == model::Tokens::kLearnable) {
    head_ = scope.Take("aux_head", {1, 1, width});
    tail_ = scope.Take("aux_tail", {1, 1, width});
  }
}

at::Tensor AuxiliaryTokens::Attach(const at::Tensor& x) const {
  if (!attaches()) return x;
  const int64_t count = x.size(0), length = x.size(1), width = x.size(2);
  at::Tensor y = at::empty({count, length + 2, width}, x.options());
  y.narrow(1, 1, length).copy_(x);
  // Both ends get the same mean. The blocks then change each end differently.
  if (ends() == ops::WindowEnds::kMean) implementation_.FillEndsWithMean(y);
  FillUnset(y);
  return y;
}

void AuxiliaryTokens::FillUnset(at::Tensor& x) const {
  if (ends() != ops::WindowEnds::kUnset) return;
  x.narrow(1, 0, 1).copy_(head_);
  x.narrow(1, x.size(1) - 1, 1).copy_(tail_);
}

ops::WindowEnds AuxiliaryTokens::ends() const {
  switch (tokens_) {
    case model::Tokens::kNone:
      return ops::WindowEnds::kNone;
    case model::Tokens::kData:
      return ops::WindowEnds::kMean;
    case model::Tokens::kLearnable:
      return ops::WindowEnds::kUnset;
  }
  return ops::WindowEnds::kNone;  // Never reached.
}

at::Tensor AuxiliaryTokens::Detach(const at::Tensor& x) {
  return x.narrow(1, 1, x.size(1) - 2).contiguous();
}

}  // namespace sfmamba::backbones
