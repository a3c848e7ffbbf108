#ifndef SFMAMBA_MODEL_BACKBONES_MAKE_MIXER_H_
#define SFMAMBA_MODEL_BACKBONES_MAKE_MIXER_H_

#include <memory>

#include "ATen/core/Tensor.h"
#include "model/backbones/mixer.h"
#include "model/config.h"
#include "model/ops/implementation.h"
#include "model/weights/state_dict.h"

namespace sfmamba::backbones {

// Makes the mixer of block `block` of stage `stage` (2 or 3) and takes its
// tensors from `scope`. `gamma` [width] is the block's layer scale, or
// undefined.
std::unique_ptr<Mixer> MakeMixer(const weights::StateDict::Scope& scope,
                                 const model::BackboneConfig& config, int stage,
                                 int block, const at::Tensor& gamma,
                                 const ops::Implementation& implementation);

}  // namespace sfmamba::backbones

#endif  // SFMAMBA_MODEL_BACKBONES_MAKE_MIXER_H_
