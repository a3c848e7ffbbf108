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

// The inputs and the output of a scan whose time is measured, on the current
// CUDA device. Values are random and have about the same distributions as in a
// trained model. The matrices have the model's memory layout. dt, B and C are
// columns of one matrix. y is the first half of another matrix's columns.
class ScanInputs {
 public:
  // `lengths` are the lengths of the sequences. If `lengths` is empty, the
  // lengths are RaggedLengths(shape) for a ragged shape (one whose sequences
  // differ in length), and all shape.length for any other shape. Returns
  // RESOURCE_EXHAUSTED if there is too little memory.
  static absl::StatusOr<std::unique_ptr<ScanInputs>> Create(
      const ScanShape& shape, std::vector<int> lengths = {});
  virtual ~ScanInputs() = default;

  // Allocates the scratch memory that Enqueue(plan) needs.
  virtual absl::Status Prepare(const kernels::ScanPlan& plan) = 0;
  // Enqueues one scan. Returns FAILED_PRECONDITION if Prepare(plan) was not
  // called.
  virtual absl::Status Enqueue(const kernels::ScanPlan& plan,
                               kernels::CudaStream stream) = 0;

  virtual int64_t tokens() const = 0;
};

}  // namespace sfmamba::tuning

#endif  // SFMAMBA_MODEL_TUNING_SCAN_INPUTS_H_
