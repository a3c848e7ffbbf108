#ifndef SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_
#define SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_

#include <string>

#include "ATen/core/Tensor.h"

namespace sfmamba {

// A parameter whose values follow from its key alone, so that a model of known
// logits needs no weights file: random bits seeded with the key's hash, scaled
// by what the key's end says the parameter is. fp32.
at::Tensor DeterministicParameter(const std::string& key,
                                  at::IntArrayRef shape);

// Images [N, 3, H, W] in [-1, 1), the same way: already normalised input. fp32.
at::Tensor DeterministicImages(at::IntArrayRef shape);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_
