#ifndef SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// Renames the tensors of a checkpoint to the names that the network takes here,
// which are timm's or VMamba's own. This happens if the keys show that the
// checkpoint has a network's original names or another library's names. All
// other checkpoints stay as they are. So do checkpoints in which two tensors
// would get the same name.
std::map<std::string, TensorView> WithCurrentNames(
    std::map<std::string, TensorView> tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_
