#ifndef SFMAMBA_MODEL_BACKBONES_ALTERNATING_SCAN_MIXER_H_
#define SFMAMBA_MODEL_BACKBONES_ALTERNATING_SCAN_MIXER_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "model/backbones/mixer.h"

namespace sfmamba::backbones {

// A mixer that shows another one its sequences in another form: from their
// ends, or behind a token that is the mean of the others. The ablation that
// scans one way in one block and the other way in the next. Source: SF-Mamba
// (arXiv 2603.16423), 4.
class AlternatingScanMixer : public Mixer {
 public:
  AlternatingScanMixer(std::unique_ptr<Mixer> mixer, bool reversed,
                       bool mean_token);

  void AddTo(layers::Residual& residual, const at::Tensor& x,
             int64_t length) const override;

 private:
  std::unique_ptr<Mixer> mixer_;
  bool reversed_;
  bool mean_token_;
};

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_ALTERNATING_SCAN_MIXER_H_
