#ifndef SFMAMBA_MODEL_OPS_DETECTION_CHECKS_H_
#define SFMAMBA_MODEL_OPS_DETECTION_CHECKS_H_

#include <vector>

#include "ATen/core/Tensor.h"

namespace sfmamba::ops {

// Check the arguments of an implementation's operators for detection, see
// Implementation. They throw c10::Error if an argument is wrong.
void CheckRoiMaps(const std::vector<at::Tensor>& maps,
                  const std::vector<int>& strides);
void CheckNmsInputs(const at::Tensor& boxes, const at::Tensor& scores,
                    const at::Tensor& groups);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_DETECTION_CHECKS_H_
