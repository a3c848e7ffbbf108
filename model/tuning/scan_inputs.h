#ifndef SFMAMBA_MODEL_TUNING_SCAN_INPUTS_H_
#define SFMAMBA_MODEL_TUNING_SCAN_INPUTS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_stream.h"
#include "kernels/scan/scan_plan.h"
#include "model/tuning/scan_plan_table.h"

namespace sfmamba::tuning {

// A scan's inputs and output on the current CUDA device, to be timed: random
// values, distributed as in a trained model, in matrices as the model has them
// (dt, B and C are columns of one, y the first half of another's).
class ScanInputs {
 public:
  // RESOURCE_EXHAUSTED if they do not fit. `lengths` are those of the
  // sequences; empty: shape.length each, or RaggedLengths(shape).
  static absl::StatusOr<std::unique_ptr<ScanInputs>> Create(
      const ScanShape& shape, std::vector<int> lengths = {});
  virtual ~ScanInputs() = default;

  // Allocates the scratch that Enqueue(plan) needs.
  virtual absl::Status Prepare(const kernels::ScanPlan& plan) = 0;
  // Enqueues one scan. FAILED_PRECONDITION without Prepare(plan).
  virtual absl::Status Enqueue(const kernels::ScanPlan& plan,
                               kernels::CudaStream stream) = 0;

  virtual int64_t tokens() const = 0;
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_INPUTS_H_
