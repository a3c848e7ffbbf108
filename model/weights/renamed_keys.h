#ifndef SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// Renames the tensors of a checkpoint whose keys show that it has a network's
// original names, or those of another library, to the names that the network
// takes here: timm's, or VMamba's own. Other checkpoints stay as they are, and
// so do tensors that would get one name.
std::map<std::string, TensorView> WithCurrentNames(
    std::map<std::string, TensorView> tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_
