#ifndef SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// Strips from the keys what training wrappers add: "_orig_mod." anywhere
// (torch.compile), and the prefixes of all of them ("module.", "model.",
// "backbone."). "model." may be missing before "head.", as where a classifier
// keeps its head beside the rest. If the alphabetically first key then begins
// with "encoder.", keeps only the tensors whose keys do, and strips this prefix
// too. At last gives a network's original names those of WithCurrentNames().
std::map<std::string, TensorView> WithoutPrefixes(
    const std::map<std::string, TensorView>& stored);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
