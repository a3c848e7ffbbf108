#ifndef SFMAMBA_MODEL_OPS_DETECTION_CHECKS_H_
#define SFMAMBA_MODEL_OPS_DETECTION_CHECKS_H_

#include <vector>

#include "ATen/core/Tensor.h"

namespace sfmamba::ops {

// What every implementation's operators for detection expect of their
// arguments, see Implementation. They throw c10::Error, naming the argument.
void CheckRoiMaps(const std::vector<at::Tensor>& maps,
                  const std::vector<int>& strides);
void CheckNmsInputs(const at::Tensor& boxes, const at::Tensor& scores,
                    const at::Tensor& groups);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_DETECTION_CHECKS_H_
