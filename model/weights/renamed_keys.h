#ifndef SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_
#define SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_

#include <map>
#include <string>

#include "model/weights/safetensors.h"

namespace sfmamba::weights {

// Renames the tensors of a checkpoint to the names that the network uses, which
// are timm's or VMamba's. Does so only if the keys are a network's original
// names or another library's names. Does not change any other checkpoint. Also
// changes nothing if two tensors would get the same name.
std::map<std::string, TensorView> WithCurrentNames(
    std::map<std::string, TensorView> tensors);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_RENAMED_KEYS_H_
