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
  const int64_t width = x.size(-1);
  // [3, sequences, heads, length, width / heads]
  const at::Tensor qkv = qkv_.Forward(x)
                             .view({-1, length, 3, heads_, width / heads_})
                             .permute({2, 0, 3, 1, 4});
  // The stream may hold only the first tokens of each sequence. Only these have
  // queries, but all have keys and values.
  const int64_t asking =
      residual.sizes()[0] * residual.sizes()[1] / qkv.size(1);
  const at::Tensor q = qkv[0].narrow(2, 0, asking);
  const at::Tensor y = implementation_.Attention(q, qkv[1], qkv[2]);
  // [sequences, heads, asking, width / heads] becomes [sequences, asking,
  // width].
  proj_.AddTo(residual, y.transpose(1, 2).reshape({-1, asking, width}));
}

}  // namespace sfmamba::backbones
