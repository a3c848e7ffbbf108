#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "kernels/cuda/gpu_timer_cuda.h"

namespace sfmamba::kernels {
namespace {

// Measures with the host's clock, at most twice, because times on the emulator
// have little meaning.
class EmulatedGpuTimer : public kernels::GpuTimer {
 public:
  absl::StatusOr<Quantiles> Warm(const Enqueue& enqueue,
                                 const Options& options) override {
    std::vector<double> times;
    for (int i = 0; i < std::min(options.repeats, 2); ++i) {
      const absl::Time start = absl::Now();
      const absl::Status status = enqueue(stream());
      if (!status.ok()) return status;
      times.push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
    }
    return Quantiles::Of(std::move(times));
  }

  absl::StatusOr<Quantiles> Cold(const Enqueue& enqueue,
                                 const Options& options) override {
    return Warm(enqueue, options);
  }

  CudaStream stream() const override { return nullptr; }
};

}  // namespace

absl::StatusOr<std::unique_ptr<GpuTimer>> GpuTimer::Create() {
  return std::make_unique<EmulatedGpuTimer>();
}

}  // namespace sfmamba::kernels
