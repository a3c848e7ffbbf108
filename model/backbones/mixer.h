#ifndef SFMAMBA_MODEL_BACKBONES_MIXER_H_
#define SFMAMBA_MODEL_BACKBONES_MIXER_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "model/ops/residual.h"

namespace sfmamba::backbones {

// Mixes information between the tokens of a sequence, by a scan or attention.
// Immutable, so thread-safe.
class Mixer {
 public:
  virtual ~Mixer() = default;

  // residual += gamma * mixer(x), where gamma is the block's layer scale, if
  // any. `residual` and x are [rows, tokens, width], contiguous. Each `length`
  // consecutive tokens are a sequence. In a folded batch a row consists of
  // several sequences.
  virtual void AddTo(ops::Residual& residual, const at::Tensor& x,
                     int64_t length) const = 0;
  // Like AddTo(), but the residual holds only some consecutive tokens of each
  // sequence, from token `first` on. Each row of x is a sequence. Throws
  // c10::Error unless the mixer is attention.
  virtual void AddToPart(ops::Residual& /*residual*/, const at::Tensor& /*x*/,
                         int64_t /*first*/) const {
    TORCH_CHECK(false, "a scan has no part");
  }
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MIXER_H_
