#ifndef SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_
#define SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_

#include <string>

#include "ATen/core/Tensor.h"

namespace sfmamba {

// Returns an fp32 parameter whose values depend only on its key. A model with
// known logits then needs no weights file. The values are random bits, seeded
// with the key's hash and scaled by the key's last part.
at::Tensor DeterministicParameter(const std::string& key,
                                  at::IntArrayRef shape);

// Returns normalized fp32 images [N, 3, H, W] with deterministic values in [-1,
// 1).
at::Tensor DeterministicImages(at::IntArrayRef shape);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_DETERMINISTIC_H_
