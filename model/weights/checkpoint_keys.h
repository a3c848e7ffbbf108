#ifndef SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// Removes from the keys what training wrappers add. This is "_orig_mod." of
// torch.compile, anywhere in a key, and the prefixes "module.", "model." and
// "backbone.", if all keys begin with them. "model." may be missing before
// "head.", because some classifiers keep the head beside the other layers.
//
// If the alphabetically first key then begins with "encoder.", drops all
// tensors whose keys do not, and removes this prefix, too. Finally calls
// WithCurrentNames().
std::map<std::string, TensorView> WithoutPrefixes(
    const std::map<std::string, TensorView>& stored);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
