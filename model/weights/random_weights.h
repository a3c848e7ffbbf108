#ifndef SFMAMBA_MODEL_WEIGHTS_RANDOM_WEIGHTS_H_
#define SFMAMBA_MODEL_WEIGHTS_RANDOM_WEIGHTS_H_

#include <cstdint>

#include "model/weights/state_dict.h"

namespace sfmamba::weights {

// Returns a generator of random weights, for trials and benchmarks of untrained
// models. A weight depends only on its key and `seed` and is the same on every
// machine. The scales are chosen so that activations neither vanish nor
// explode. Linear layers preserve the variance. Convolutions preserve it if
// their input comes from a ReLU. Norms are the identity. Only the detectors'
// classifiers have larger weights, so that some classes get high scores.
// Thread-safe.
StateDict::Generator MakeRandomWeights(uint64_t seed);

}  // namespace sfmamba::weights

#endif  // SFMAMBA_MODEL_WEIGHTS_RANDOM_WEIGHTS_H_
