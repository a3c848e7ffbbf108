#include "model/tuning/scan_timer.h"

#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/gpu_timer_cuda.h"
#include "kernels/scan/scan_build_id.h"
#include "model/tuning/scan_inputs.h"

namespace sfmamba::tuning {
namespace {

// A plan gets 20 measurements, or fewer if they would take longer than 20 ms.
// In each measurement, GpuTimer::Warm() runs the scan ten times.
constexpr kernels::GpuTimer::Options kMeasurements = {/*repeats=*/20,
                                                      absl::Milliseconds(20)};

// Measures plans one after another. Uses the same inputs again if the next plan
// is for the same shape.
class ScanTimer {
 public:
  explicit ScanTimer(std::unique_ptr<kernels::GpuTimer> timer)
      : timer_(std::move(timer)) {}

  absl::StatusOr<double> Measure(const ScanShape& shape,
                                 const kernels::ScanPlan& plan) {
    const std::string name = ToString(shape);
    if (name != shape_) {
      inputs_.reset();  // Frees their memory first.
      shape_.clear();
      auto inputs = ScanInputs::Create(shape);
      if (!inputs.ok()) return inputs.status();
      inputs_ = *std::move(inputs);
      shape_ = name;
    }
    const absl::Status prepared = inputs_->Prepare(plan);
    if (!prepared.ok()) return prepared;
    const absl::StatusOr<kernels::Quantiles> times = timer_->Warm(
        [&](kernels::CudaStream stream) {
          return inputs_->Enqueue(plan, stream);
        },
        kMeasurements);
    if (!times.ok()) return times.status();
    return times->median;
  }

 private:
  std::unique_ptr<kernels::GpuTimer> timer_;
  std::string shape_;  // The shape of inputs_.
  std::unique_ptr<ScanInputs> inputs_;
};

}  // namespace

absl::StatusOr<ScanDevice> ScanDeviceOf(int gpu) {
  const absl::StatusOr<kernels::GpuDevice> device = kernels::DescribeGpu(gpu);
  if (!device.ok()) return device.status();
  return ScanDevice{device->name, device->multiprocessors,
                    kernels::ScanBuildId()};
}

absl::StatusOr<MeasureScan> MakeScanTimer(int gpu) {
  const absl::Status current = kernels::SelectGpu(gpu);
  if (!current.ok()) return current;
  auto timer = kernels::GpuTimer::Create();
  if (!timer.ok()) return timer.status();
  auto scans = std::make_shared<ScanTimer>(*std::move(timer));
  return [scans](const ScanShape& shape, const kernels::ScanPlan& plan) {
    const absl::StatusOr<double> time = scans->Measure(shape, plan);
    // Otherwise, CUDA would report the refused launch again for the next plan.
    if (!time.ok()) kernels::ForgetGpuError();
    return time;
  };
}

}  // namespace sfmamba::tuning
