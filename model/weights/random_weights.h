#ifndef SFMAMBA_MODEL_WEIGHTS_RANDOM_WEIGHTS_H_
#define SFMAMBA_MODEL_WEIGHTS_RANDOM_WEIGHTS_H_

#include <cstdint>

#include "model/weights/state_dict.h"

namespace sfmamba::weights {

// Weights for trials and benchmarks of models that nobody has trained. Each
// follows from its key and `seed` alone, on any machine. Scales are those of an
// initialisation, so that activations neither die out nor explode: layers keep
// the variance (convolutions that of a ReLU's answer), norms change nothing.
// Only the detectors' classifiers are bolder, so that some classes win.
// Thread-safe.
StateDict::Generator MakeRandomWeights(uint64_t seed);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_RANDOM_WEIGHTS_H_
