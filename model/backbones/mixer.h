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

  // Computes residual += gamma * mixer(x). gamma is the block's layer scale, if
  // there is one. `residual` and x are [rows, tokens, width], contiguous. Each
  // `length` consecutive tokens form a sequence. A row may consist of several
  // sequences.
  virtual void AddTo(ops::Residual& residual, const at::Tensor& x,
                     int64_t length) const = 0;
  // Like AddTo(), but the residual contains only some consecutive tokens of
  // each sequence, which begin with token `first`. Each row of x is one
  // sequence. Only attention supports this. All other mixers throw c10::Error.
  virtual void AddToPart(ops::Residual& /*residual*/, const at::Tensor& /*x*/,
                         int64_t /*first*/) const {
    TORCH_CHECK(false, "a scan has no part");
  }
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MIXER_H_
