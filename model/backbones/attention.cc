#include "model/backbones/attention.h"

namespace sfmamba::backbones {

Attention::Attention(const weights::StateDict::Scope& scope, int width,
                     int heads, const at::Tensor& gamma,
                     const ops::Implementation& implementation)
    : implementation_(implementation),
      heads_(heads),
      qkv_({layers::Linear::Take(scope.Sub("qkv"), width, 3 * width, true),
            {},
            ops::Epilogue::kNone,
            /*is_output=*/false,
            /*feeds_products=*/true},
           implementation),
      proj_(
          {layers::Linear::Take(scope.Sub("proj"), width, width, true), gamma},
          implementation) {}

void Attention::AddTo(ops::Residual& residual, const at::Tensor& x,
                      int64_t length) const {
  AddTokens(residual, x, length, /*first=*/0, /*count=*/length);
}

void Attention::AddToPart(ops::Residual& residual, const at::Tensor& x,
                          int64_t first) const {
  AddTokens(residual, x, x.size(1), first, residual.sizes()[1]);
}

void Attention::AddTokens(ops::Residual& residual, const at::Tensor& x,
                          int64_t length, int64_t first, int64_t count) const {
  const int64_t width = x.size(-1);
  // The shape is [3, sequences, heads, length, width / heads].
  const at::Tensor qkv = qkv_.Forward(x)
                             .view({-1, length, 3, heads_, width / heads_})
                             .permute({2, 0, 3, 1, 4});
  // All tokens have keys and values. Queries are computed only for tokens
  // [first, first + count).
  const at::Tensor q = qkv[0].narrow(2, first, count);
  const at::Tensor y = implementation_.Attention(q, qkv[1], qkv[2]);
  // The shape [sequences, heads, count, width / heads] becomes [sequences,
  // count, width].
  proj_.AddTo(residual, y.transpose(1, 2).reshape({-1, count, width}));
}

}  // namespace sfmamba::backbones
