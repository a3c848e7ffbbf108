#ifndef SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// The tensors without the prefixes that training wrappers leave on every key
// ("module.", "model.", "backbone."); where the alphabetically first key then
// begins with "encoder.", only those that do, without it.
std::map<std::string, TensorView> WithoutPrefixes(
    std::map<std::string, TensorView> tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
