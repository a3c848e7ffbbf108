#ifndef SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// Removes the parts of the keys that training wrappers add:
//
// - torch.compile adds "_orig_mod.". It is removed anywhere in a key.
// - Other wrappers add the prefixes "module.", "model." and "backbone.". A
//   prefix is removed if all keys begin with it. Keys that begin with "head."
//   need not have the prefix "model.", because some classifiers store the head
//   beside the other layers.
//
// The checkpoint of a pretraining contains an encoder and other networks. It is
// recognized if the alphabetically first of the remaining keys begins with
// "encoder.". MambaVision's own loader does the same. In this case, only the
// encoder's tensors are returned, without this prefix.
//
// Finally calls WithCurrentNames().
std::map<std::string, TensorView> WithoutPrefixes(
    const std::map<std::string, TensorView>& stored);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_CHECKPOINT_KEYS_H_
