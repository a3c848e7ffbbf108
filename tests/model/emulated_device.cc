#include "tests/model/emulated_device.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "ATen/ops/empty.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "model/engine/device_runtime.h"
#include "model/ops/cuda/cuda_ops.h"
#include "model/ops/device_ops.h"

namespace sfmamba {
namespace model {
namespace {

// The emulator's convolutions run in libtorch on the CPU. With AMX, oneDNN in
// libtorch 2.11 computes convolutions of small maps incorrectly. oneDNN reads
// this variable before its first operator.
const bool without_amx =
    setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", /*overwrite=*/1) == 0;

constexpr int kGpus = 2;

struct State {
  std::atomic<int> refusals{0}, recorded{0}, replayed{0}, graphs{0}, streams{0},
      copies_in{0}, host_gpu{-1};
  std::atomic<int64_t> memory_limit{0};
  std::atomic<bool> broken[kGpus] = {};
};

State& TheState() {
  static auto& state = *new State;
  return state;
}

class EmulatedScope : public engine::DeviceStream::Scope {};

// Like a CUDA graph, it stores only the addresses of its input and its answers.
class EmulatedGraph : public engine::DeviceGraph {
 public:
  using Enqueue = std::function<at::Tensor(const at::Tensor&)>;

  EmulatedGraph(const at::Tensor& input, Enqueue enqueue)
      : input_(input), enqueue_(std::move(enqueue)), answers_(enqueue_(input)) {
    answers_.zero_();  // A recording computes nothing.
    ++TheState().graphs;
  }
  ~EmulatedGraph() override { --TheState().graphs; }

  at::Tensor Replay() override {
    ++TheState().replayed;
    return answers_.copy_(enqueue_(input_));
  }

 private:
  const at::Tensor input_;
  const Enqueue enqueue_;
  const at::Tensor answers_;
};

class EmulatedStream : public engine::DeviceStream {
 public:
  explicit EmulatedStream(int gpu) : gpu_(gpu) { ++TheState().streams; }
  ~EmulatedStream() override { --TheState().streams; }

  std::unique_ptr<Scope> Enter() override {
    return std::make_unique<EmulatedScope>();
  }
  at::Tensor AllocateHost(int64_t size, at::ScalarType type) override {
    return at::empty({size}, type);
  }
  at::Tensor AllocateDevice(int64_t size, at::ScalarType type) override {
    const int64_t limit = TheState().memory_limit;
    if (limit > 0 && size > limit) {
      TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory for ", size);
    }
    return at::empty({size}, type);
  }
  void CopyIn(const void* host, void* device, int64_t bytes) override {
    CheckBroken();
    ++TheState().copies_in;
    std::memcpy(device, host, bytes);
  }
  void EndCopyIn() override { started_ = absl::Now(); }
  void CopyOut(const at::Tensor& device, const at::Tensor& host) override {
    CheckBroken();
    computed_ = absl::Now();
    host.copy_(device);
  }
  void Wait() override {}
  absl::Duration ComputeTime() override { return computed_ - started_; }

  absl::StatusOr<std::unique_ptr<engine::DeviceGraph>> Record(
      const at::Tensor& input, const EmulatedGraph::Enqueue& enqueue) override {
    if (TheState().refusals > 0) {
      --TheState().refusals;
      return absl::InternalError("this stream cannot be recorded");
    }
    ++TheState().recorded;
    return std::make_unique<EmulatedGraph>(input, enqueue);
  }
  absl::Status Check() override {
    if (!TheState().broken[gpu_]) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("GPU ", gpu_, ": it is broken"));
  }

 private:
  void CheckBroken() const {
    TORCH_CHECK(!TheState().broken[gpu_], "an illegal memory access");
  }

  const int gpu_;
  absl::Time started_, computed_;
};

class EmulatedRuntime : public engine::DeviceRuntime {
 public:
  int count() const override { return kGpus; }
  tuning::ScanDevice Describe(int) const override {
    return {"an emulated GPU", 4, "some build"};
  }
  at::Device device(int) const override { return at::kCPU; }
  const ops::DeviceOps& ops() const override { return EmulatedOps(); }
  std::unique_ptr<engine::DeviceStream> MakeStream(int gpu) const override {
    return std::make_unique<EmulatedStream>(gpu);
  }
  std::shared_ptr<uint8_t> AllocateHost(int gpu, int64_t bytes) const override {
    TheState().host_gpu = gpu;
    return std::shared_ptr<uint8_t>(new uint8_t[bytes],
                                    std::default_delete<uint8_t[]>());
  }
  void ConfigureLibraries() const override {}
  void Load(int, const std::function<void()>& load) const override { load(); }
};

}  // namespace

const ops::DeviceOps& EmulatedOps() {
  static const auto& ops = *new ops::CudaOps(
      [](const at::Tensor&) -> kernels::CudaStream { return nullptr; });
  return ops;
}

namespace emulated {

void RefuseToRecord(int count) { TheState().refusals = count; }
void LimitMemory(int64_t bytes) { TheState().memory_limit = bytes; }
void BreakDevice(bool broken, int gpu) { TheState().broken[gpu] = broken; }
int copies_in() { return TheState().copies_in; }
int gpu_of_host_memory() { return TheState().host_gpu; }
int graphs_recorded() { return TheState().recorded; }
int graphs_replayed() { return TheState().replayed; }
int graphs_alive() { return TheState().graphs; }
int streams_alive() { return TheState().streams; }

}  // namespace emulated

}  // namespace model

// Replaces the weak definition of Devices() in model/engine, so that models run
// on the emulated GPUs.
namespace engine {

const DeviceRuntime* Devices() {
  static const auto& runtime = *new model::EmulatedRuntime;
  return &runtime;
}

}  // namespace engine
}  // namespace sfmamba
