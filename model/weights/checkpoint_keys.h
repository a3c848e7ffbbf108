#ifndef SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// Strips from the keys the prefixes that training wrappers add to all of them
// ("module.", "model.", "backbone."). If the alphabetically first key then
// begins with "encoder.", keeps only the tensors whose keys do, and strips this
// prefix too.
std::map<std::string, TensorView> WithoutPrefixes(
    std::map<std::string, TensorView> tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
