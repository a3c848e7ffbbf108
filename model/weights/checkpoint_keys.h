#ifndef SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// Removes what training wrappers add to the keys. This is "_orig_mod." of
// torch.compile, anywhere in a key. It is also the prefixes "module.", "model."
// and "backbone.", if all keys begin with them. Keys that begin with "head."
// need not have the prefix "model.", because some classifiers store the head
// beside the other layers.
//
// If the alphabetically first key then begins with "encoder.", drops all
// tensors with other keys, and removes this prefix, too. Finally calls
// WithCurrentNames().
std::map<std::string, TensorView> WithoutPrefixes(
    const std::map<std::string, TensorView>& stored);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
