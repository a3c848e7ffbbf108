#ifndef SFMAMBA_TESTS_GPU_MODEL_DEVICE_H_
#define SFMAMBA_TESTS_GPU_MODEL_DEVICE_H_

#include "model/vision_model.h"

namespace sfmamba {

// The device on which the tests of whole models run: the first GPU in
// //tests/gpu:suite, and the CPU in //tests/gpu:models_test, which validates
// the tests themselves.

// Returns false if there is no GPU. Tests are then skipped.
bool HasModelDevice();

model::ModelOptions OnModelDevice();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_MODEL_DEVICE_H_
