#ifndef SFMAMBA_MODEL_LAYERS_LAYER_NORM_H_
#define SFMAMBA_MODEL_LAYERS_LAYER_NORM_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::layers {

// A LayerNorm over `width` channels. Immutable, so thread-safe.
class LayerNorm {
 public:
  // Takes "weight" and "bias", both [width].
  LayerNorm(const weights::StateDict::Scope& scope, int width,
            const ops::Implementation& implementation, float eps = 1e-5f)
      : op_(implementation.MakeLayerNorm({scope.Take("weight", {width}),
                                          scope.Take("bias", {width}), eps})) {}

  // Returns the normalised tokens of the residual stream x. Each `length`
  // consecutive tokens form a sequence. If `swap`, first exchanges the first
  // and the last token of each sequence. This exchange changes x, too.
  at::Tensor Forward(ops::Residual& x, int64_t length, bool swap) const {
    return op_->Forward(x, length, swap);
  }
  // Returns all normalised tokens of the residual stream x. Then drops all
  // tokens from x except tokens [first, first + count) of each row.
  at::Tensor ForwardKeeping(ops::Residual& x, int64_t first,
                            int64_t count) const {
    return op_->ForwardKeeping(x, first, count);
  }
  // Returns `map` [N, width, H, W] with each pixel normalised, in fp32.
  at::Tensor ForwardMap(const at::Tensor& map) const {
    return op_->ForwardMap(map);
  }

 private:
  std::unique_ptr<const ops::LayerNormOp> op_;
};

}  // namespace sfmamba::layers

#endif  // SFMAMBA_MODEL_LAYERS_LAYER_NORM_H_
