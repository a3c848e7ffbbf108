#include <cstdio>
#include <map>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/gpu_device.h"
#include "kernels/cuda/gpu_timer_cuda.h"
#include "kernels/scan/scan_build_id.h"
#include "model/tuning/scan_inputs.h"
#include "tests/gpu/benchmark.h"

namespace sfmamba {
namespace {

// Returns the first line of nvidia-smi about the first GPU. Returns "" if
// nvidia-smi fails.
std::string AskNvidiaSmi(const std::string& what) {
  const std::string command = absl::StrCat(
      "nvidia-smi -i 0 --format=csv,noheader,nounits --query-gpu=", what,
      " 2>/dev/null");
  std::FILE* answer = popen(command.c_str(), "r");
  if (answer == nullptr) return "";
  char line[256] = "";
  const bool read = std::fgets(line, sizeof(line), answer) != nullptr;
  pclose(answer);
  return read ? std::string(absl::StripAsciiWhitespace(line)) : "";
}

// Returns how many bytes per second a copy reads and writes together. The copy
// is far larger than the L2 cache. Does not use Warm(), because it replays a
// CUDA graph. On an H200, copies in a graph reached only 2.8 TB/s. Copies
// without a graph reached 4.2 TB/s.
absl::StatusOr<double> CopySpeed(kernels::GpuTimer& timer, bool tiny) {
  const size_t bytes = size_t{1} << (tiny ? 20 : 30);
  kernels::GpuBuffer from, to;
  absl::Status status = from.Resize(bytes);
  if (status.ok()) status = to.Resize(bytes);
  if (!status.ok()) return status;
  const absl::StatusOr<kernels::Quantiles> times = timer.Cold(
      [&](kernels::CudaStream stream) {
        return kernels::CopyOnGpu(to.data(), from.data(), bytes, stream);
      },
      {});
  if (!times.ok()) return times.status();
  return 2 * bytes / times->median * 1e6;
}

// Measures the plans of one case, one after another.
class CaseTimer {
 public:
  CaseTimer(kernels::GpuTimer& timer, const ScanCase& scan,
            tuning::ScanInputs& inputs)
      : timer_(timer), scan_(scan), inputs_(inputs) {}

  // Measures a plan briefly, to choose the plans for a full measurement.
  absl::StatusOr<double> Try(const kernels::ScanPlan& plan) {
    const absl::Status prepared = inputs_.Prepare(plan);
    if (!prepared.ok()) return prepared;
    const auto times = timer_.Warm(Enqueue(plan), {20, absl::Milliseconds(10)});
    if (!times.ok()) return times.status();
    return times->median;
  }

  absl::StatusOr<ScanFigure> Measure(const kernels::ScanPlan& plan) {
    const absl::Status prepared = inputs_.Prepare(plan);
    if (!prepared.ok()) return prepared;
    const auto warm = timer_.Warm(Enqueue(plan), {});
    if (!warm.ok()) return warm.status();
    const auto cold = timer_.Cold(Enqueue(plan), {});
    if (!cold.ok()) return cold.status();
    return ScanFigure{
        scan_, NameOf(plan.kernel), ToString(plan), plan.rows, *warm, *cold};
  }

 private:
  kernels::GpuTimer::Enqueue Enqueue(const kernels::ScanPlan& plan) {
    return [this, plan](kernels::CudaStream stream) {
      return inputs_.Enqueue(plan, stream);
    };
  }

  kernels::GpuTimer& timer_;
  const ScanCase& scan_;
  tuning::ScanInputs& inputs_;
};

// Returns the fastest plans in brief measurements, for a full measurement. If
// the group is kPaper, returns a plan for each B1 of each kernel. Otherwise,
// returns one plan for each kernel.
absl::StatusOr<std::vector<kernels::ScanPlan>> Choose(CaseTimer& timer,
                                                      const ScanCase& scan,
                                                      int multiprocessors) {
  std::map<std::pair<kernels::ScanPlan::Kernel, int>,
           std::pair<double, kernels::ScanPlan>>
      best;
  for (const kernels::ScanPlan& plan : PlansOf(scan, multiprocessors)) {
    const absl::StatusOr<double> time = timer.Try(plan);
    if (!time.ok()) return time.status();
    const int rows = scan.group == ScanCase::kPaper ? plan.rows : 0;
    const auto [it, is_new] =
        best.try_emplace({plan.kernel, rows}, *time, plan);
    if (!is_new && *time < it->second.first) it->second = {*time, plan};
  }
  std::vector<kernels::ScanPlan> plans;
  for (const auto& [key, entry] : best) plans.push_back(entry.second);
  return plans;
}

}  // namespace

absl::StatusOr<Setting> ReadSetting(bool tiny) {
  const absl::StatusOr<kernels::GpuDevice> device =
      kernels::DescribeGpu(/*gpu=*/0);
  if (!device.ok()) return device.status();
  const auto timer = kernels::GpuTimer::Create();
  if (!timer.ok()) return timer.status();
  const absl::StatusOr<double> speed = CopySpeed(**timer, tiny);
  if (!speed.ok()) return speed.status();
  return Setting{device->name,
                 device->multiprocessors,
                 AskNvidiaSmi("driver_version"),
                 kernels::ScanBuildId(),
                 device->clock_hz,
                 *speed,
                 device->fp32_per_clock};
}

Clocks ReadClocks() {
  return ParseClocks(
      AskNvidiaSmi("clocks.sm,clocks.mem,temperature.gpu,power.draw"),
      AskNvidiaSmi("clocks_event_reasons.active"));
}

absl::Status MeasureScans(const std::vector<ScanCase>& cases,
                          const Setting& setting, const WriteLine& write) {
  const auto timer = kernels::GpuTimer::Create();
  if (!timer.ok()) return timer.status();
  for (const ScanCase& scan : cases) {
    const auto inputs = tuning::ScanInputs::Create(scan.shape, scan.lengths);
    if (!inputs.ok()) return inputs.status();
    CaseTimer case_timer(**timer, scan, **inputs);
    const auto plans = Choose(case_timer, scan, setting.multiprocessors);
    if (!plans.ok()) return plans.status();
    for (const kernels::ScanPlan& plan : *plans) {
      const auto figure = case_timer.Measure(plan);
      if (!figure.ok()) return figure.status();
      write(Json(*figure, setting));
    }
  }
  return absl::OkStatus();
}

}  // namespace sfmamba
