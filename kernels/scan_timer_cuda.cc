#include "kernels/scan_timer_cuda.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda_status.h"
#include "kernels/gpu_timer_cuda.h"
#include "kernels/scan_build_id.h"
#include "kernels/scan_inputs_cuda.h"

namespace sfmamba {
namespace {

// Measures plan after plan; keeps the inputs of the shape that came last.
class ScanTimer {
 public:
  explicit ScanTimer(GpuTimer& timer) : timer_(timer) {}

  absl::StatusOr<double> Measure(const ScanShape& shape, const ScanPlan& plan) {
    const std::string name = ToString(shape);
    if (name != shape_) {
      inputs_.reset();  // Its memory first.
      shape_.clear();
      auto inputs = ScanInputs::Create(shape);
      if (!inputs.ok()) return inputs.status();
      inputs_ = *std::move(inputs);
      shape_ = name;
    }
    const absl::Status prepared = inputs_->Prepare(plan);
    if (!prepared.ok()) return prepared;
    const absl::StatusOr<Quantiles> times = timer_.Warm(
        [&](CudaStream stream) { return inputs_->Enqueue(plan, stream); }, {});
    if (!times.ok()) return times.status();
    return times->median;
  }

 private:
  GpuTimer& timer_;
  std::string shape_;  // Of inputs_.
  std::unique_ptr<ScanInputs> inputs_;
};

}  // namespace

absl::StatusOr<ScanDevice> ScanDeviceOf(int gpu) {
  cudaDeviceProp properties;
  const absl::Status status =
      CudaStatus(cudaGetDeviceProperties(&properties, gpu),
                 absl::StrCat("GPU ", gpu, ": cudaGetDeviceProperties"));
  if (!status.ok()) return status;
  return ScanDevice{properties.name, properties.multiProcessorCount,
                    ScanBuildId()};
}

absl::StatusOr<FoldTable> TuneScans(int gpu, absl::Span<const ScanShape> shapes,
                                    const TuneOptions& options) {
  const absl::StatusOr<ScanDevice> device = ScanDeviceOf(gpu);
  if (!device.ok()) return device.status();
  const absl::Status current = CudaStatus(
      cudaSetDevice(gpu), absl::StrCat("GPU ", gpu, ": cudaSetDevice"));
  if (!current.ok()) return current;
  const auto timer = GpuTimer::Create();
  if (!timer.ok()) return timer.status();
  ScanTimer scans(**timer);
  return TuneScans(
      *device, shapes,
      [&](const ScanShape& shape, const ScanPlan& plan) {
        return scans.Measure(shape, plan);
      },
      options);
}

}  // namespace sfmamba
