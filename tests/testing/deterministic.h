#ifndef SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_
#define SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_

#include <string>

#include "ATen/core/Tensor.h"

namespace sfmamba {

// Returns an fp32 parameter whose values depend only on its key and its shape.
// So tests can build a model with known outputs without a weights file. The
// values are pseudorandom numbers, and their seed is a hash of the key. The end
// of the key (for example "weight" or "bias") and the shape decide the range of
// the values.
at::Tensor DeterministicParameter(const std::string& key,
                                  at::IntArrayRef shape);

// Returns normalized fp32 images [N, 3, H, W] with deterministic values in [-1,
// 1).
at::Tensor DeterministicImages(at::IntArrayRef shape);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_
