#ifndef SFMAMBA_TESTS_GPU_MODEL_DEVICE_H_
#define SFMAMBA_TESTS_GPU_MODEL_DEVICE_H_

#include "model/vision_model.h"

namespace sfmamba {

// Where the tests of whole models run: in //tests/gpu:suite on the first GPU,
// in //tests/gpu:models_test on the CPU, which shows that the tests are sound.

// False without a GPU: the tests skip.
bool HasModelDevice();

model::ModelOptions OnModelDevice();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_GPU_MODEL_DEVICE_H_
