#include <cuda_runtime_api.h>

#include <cstdio>
#include <map>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda_status.h"
#include "kernels/gpu_timer_cuda.h"
#include "kernels/scan_inputs_cuda.h"
#include "kernels/scan_timer_cuda.h"
#include "tests/gpu/benchmark.h"

namespace sfmamba {
namespace {

// The first line that nvidia-smi says of the first GPU; empty if it fails.
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

// Bytes per second, read and written, of a copy far larger than the L2 cache.
absl::StatusOr<double> CopySpeed(GpuTimer& timer) {
  constexpr size_t kBytes = size_t{1} << 30;
  void* memory = nullptr;
  const absl::Status allocated =
      CudaStatus(cudaMalloc(&memory, 2 * kBytes), "memory to copy");
  if (!allocated.ok()) return allocated;
  char* from = static_cast<char*>(memory);
  const absl::StatusOr<Quantiles> times = timer.Warm(
      [&](CudaStream stream) {
        return CudaStatus(cudaMemcpyAsync(from + kBytes, from, kBytes,
                                          cudaMemcpyDeviceToDevice, stream),
                          "cudaMemcpyAsync");
      },
      {});
  cudaFree(memory);
  if (!times.ok()) return times.status();
  return 2 * kBytes / times->median * 1e6;
}

const char* NameOf(ScanPlan::Kernel kernel) {
  static constexpr const char* kNames[] = {"lane", "fold", "chunk"};
  return kNames[kernel];
}

// Measures the plans of one case, one after the other.
class CaseTimer {
 public:
  CaseTimer(GpuTimer& timer, const ScanCase& scan, ScanInputs& inputs)
      : timer_(timer), scan_(scan), inputs_(inputs) {}

  // Briefly, to choose by.
  absl::StatusOr<double> Try(const ScanPlan& plan) {
    const absl::Status prepared = inputs_.Prepare(plan);
    if (!prepared.ok()) return prepared;
    const auto times = timer_.Warm(Enqueue(plan), {20, absl::Milliseconds(10)});
    if (!times.ok()) return times.status();
    return times->median;
  }

  absl::StatusOr<ScanFigure> Measure(const ScanPlan& plan) {
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
  GpuTimer::Enqueue Enqueue(const ScanPlan& plan) {
    return [this, plan](CudaStream stream) {
      return inputs_.Enqueue(plan, stream);
    };
  }

  GpuTimer& timer_;
  const ScanCase& scan_;
  ScanInputs& inputs_;
};

// The plans worth a full measurement: each B1 of a kernel has one, or the whole
// kernel.
absl::StatusOr<std::vector<ScanPlan>> Choose(CaseTimer& timer,
                                             const ScanCase& scan,
                                             int multiprocessors) {
  std::map<std::pair<ScanPlan::Kernel, int>, std::pair<double, ScanPlan>> best;
  for (const ScanPlan& plan : PlansOf(scan, multiprocessors)) {
    const absl::StatusOr<double> time = timer.Try(plan);
    if (!time.ok()) return time.status();
    const int rows = scan.group == ScanCase::kPaper ? plan.rows : 0;
    const auto [it, is_new] =
        best.try_emplace({plan.kernel, rows}, *time, plan);
    if (!is_new && *time < it->second.first) it->second = {*time, plan};
  }
  std::vector<ScanPlan> plans;
  for (const auto& [key, entry] : best) plans.push_back(entry.second);
  return plans;
}

}  // namespace

absl::StatusOr<Setting> ReadSetting() {
  const auto device = ScanDeviceOf(0);
  if (!device.ok()) return device.status();
  Setting setting;
  setting.device = device->name;
  setting.multiprocessors = device->multiprocessors;
  setting.build = device->build;
  setting.driver = AskNvidiaSmi("driver_version");
  int khz = 0, major = 0, minor = 0;
  cudaError_t error = cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
  if (error == cudaSuccess) {
    error =
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  }
  if (error == cudaSuccess) {
    error =
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  }
  if (error != cudaSuccess) return CudaStatus(error, "cudaDeviceGetAttribute");
  setting.clock_hz = khz * 1e3;
  setting.fp32_per_clock = major == 8 && minor == 0 ? 64 : 128;
  const auto timer = GpuTimer::Create();
  if (!timer.ok()) return timer.status();
  const absl::StatusOr<double> speed = CopySpeed(**timer);
  if (!speed.ok()) return speed.status();
  setting.bytes_per_second = *speed;
  return setting;
}

Clocks ReadClocks() {
  return ParseClocks(
      AskNvidiaSmi("clocks.sm,clocks.mem,temperature.gpu,power.draw"));
}

absl::StatusOr<std::vector<ScanFigure>> MeasureScans(
    const std::vector<ScanCase>& cases, const Setting& setting,
    const WriteLine& write) {
  const auto timer = GpuTimer::Create();
  if (!timer.ok()) return timer.status();
  std::vector<ScanFigure> figures;
  for (const ScanCase& scan : cases) {
    const auto inputs = ScanInputs::Create(scan.shape, scan.lengths);
    if (!inputs.ok()) return inputs.status();
    CaseTimer case_timer(**timer, scan, **inputs);
    const auto plans = Choose(case_timer, scan, setting.multiprocessors);
    if (!plans.ok()) return plans.status();
    for (const ScanPlan& plan : *plans) {
      const auto figure = case_timer.Measure(plan);
      if (!figure.ok()) return figure.status();
      figures.push_back(*figure);
      write(Json(*figure, setting));
    }
  }
  return figures;
}

}  // namespace sfmamba
