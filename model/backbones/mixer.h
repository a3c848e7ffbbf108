#ifndef SFMAMBA_MODEL_BACKBONES_MIXER_H_
#define SFMAMBA_MODEL_BACKBONES_MIXER_H_

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "model/layers/residual.h"

namespace sfmamba::backbones {

// What lets the tokens of a sequence see each other: a scan or attention.
// Immutable, so thread-safe.
class Mixer {
 public:
  virtual ~Mixer() = default;

  // residual += gamma * mixer(x), gamma being the block's layer scale, if any.
  // Both are [rows, tokens, width], contiguous; each `length` tokens in a row
  // are a sequence, `tokens` a multiple of it: a folded batch has
  // several sequences in a row.
  virtual void AddTo(layers::Residual& residual, const at::Tensor& x,
                     int64_t length) const = 0;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MIXER_H_
