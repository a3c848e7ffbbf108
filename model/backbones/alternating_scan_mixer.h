#ifndef SFMAMBA_MODEL_BACKBONES_ALTERNATING_SCAN_MIXER_H_
#define SFMAMBA_MODEL_BACKBONES_ALTERNATING_SCAN_MIXER_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "model/backbones/mixer.h"

namespace sfmamba::backbones {

// Applies another mixer to reversed sequences, to sequences with the mean of
// their tokens in front, or to both. If every second block reverses, the blocks
// scan in alternating directions. This is an ablation. Source: SF-Mamba (arXiv
// 2603.16423), 4.
class AlternatingScanMixer : public Mixer {
 public:
  AlternatingScanMixer(std::unique_ptr<Mixer> mixer, bool reversed,
                       bool mean_token);

  void AddTo(ops::Residual& residual, const at::Tensor& x,
             int64_t length) const override;

 private:
  std::unique_ptr<Mixer> mixer_;
  bool reversed_;
  bool mean_token_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_ALTERNATING_SCAN_MIXER_H_
