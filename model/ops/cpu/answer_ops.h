#ifndef SFMAMBA_MODEL_OPS_CPU_ANSWER_OPS_H_
#define SFMAMBA_MODEL_OPS_CPU_ANSWER_OPS_H_

#include <cstdint>
#include <memory>

#include "ATen/core/Tensor.h"
#include "model/result.h"

namespace sfmamba::ops {

// The following functions process results of the network that were copied to
// the CPU. They run on the calling thread.

// Non-maximum suppression, see kernels/detection/nms.h. boxes is [n, 4] and
// scores is [n]. groups is int32 [n], or undefined if all boxes are in one
// group. Returns the indices of at most `max_kept` boxes, as int64, the best
// first.
at::Tensor Nms(const at::Tensor& boxes, const at::Tensor& scores,
               const at::Tensor& groups, float iou_threshold, int64_t max_kept);

// Returns the mask [S, S] pasted into `box` of a picture, see
// kernels/detection/mask_runs.h. The mask's runs are computed on demand, on the
// thread that asks for them.
std::shared_ptr<const model::InstanceMask> MakeMask(const at::Tensor& mask,
                                                    const model::Box& box,
                                                    float threshold,
                                                    int picture_height,
                                                    int picture_width);

}  // namespace sfmamba::ops

#endif  // SFMAMBA_MODEL_OPS_CPU_ANSWER_OPS_H_
