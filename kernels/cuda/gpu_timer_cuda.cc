#include "kernels/cuda/gpu_timer_cuda.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "kernels/cuda/capture_mutex.h"
#include "kernels/cuda/cuda_status.h"

namespace sfmamba::kernels {
namespace {

struct Destroy {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  void operator()(void* memory) const { cudaFree(memory); }
};
template <typename T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroy>;

constexpr int kLaunches = 10;  // The number of repetitions in one graph.
constexpr int kFewestRepeats = 5;
constexpr size_t kFlushBytes = size_t{256} << 20;  // Larger than any L2 cache.

class CudaGpuTimer : public GpuTimer {
 public:
  absl::Status Init() {
    cudaStream_t stream = nullptr;
    cudaError_t error = cudaGetDevice(&gpu_);
    if (error == cudaSuccess) {
      error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    }
    stream_.reset(stream);
    return CudaStatus(error, "cudaStreamCreate");
  }

  absl::StatusOr<Quantiles> Warm(const Enqueue& enqueue,
                                 const Options& options) override {
    // CUDA loads a kernel at its first launch. Loading should not happen during
    // a capture, so this call comes before it.
    absl::Status status = enqueue(stream_.get());
    if (!status.ok()) return status;
    Owned<cudaGraphExec_t> graph;
    status = Capture(enqueue, &graph);
    if (!status.ok()) return status;
    return Measure(
        options, kLaunches, [] { return absl::OkStatus(); },
        [&] {
          return CudaStatus(cudaGraphLaunch(graph.get(), stream_.get()),
                            "cudaGraphLaunch");
        });
  }

  absl::StatusOr<Quantiles> Cold(const Enqueue& enqueue,
                                 const Options& options) override {
    const absl::Status reserved = ReserveFlush();
    if (!reserved.ok()) return reserved;
    // The flush takes longer than enqueueing the work. So the work is already
    // queued when the flush ends, and its launch overhead is not timed.
    return Measure(
        options, /*launches=*/1,
        [&] {
          return CudaStatus(
              cudaMemsetAsync(flush_.get(), 0, kFlushBytes, stream_.get()),
              "cudaMemsetAsync");
        },
        [&] { return enqueue(stream_.get()); });
  }

  CudaStream stream() const override { return stream_.get(); }

 private:
  absl::Status ReserveFlush() {
    if (flush_ != nullptr) return absl::OkStatus();
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, kFlushBytes);
    flush_.reset(memory);
    return CudaStatus(error, "memory to flush the L2 cache with");
  }

  absl::Status Capture(const Enqueue& enqueue, Owned<cudaGraphExec_t>* graph) {
    const absl::MutexLock lock(&CaptureMutex(gpu_));
    absl::Status status = CudaStatus(
        cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
    if (!status.ok()) return status;
    for (int i = 0; i < kLaunches && status.ok(); ++i) {
      status = enqueue(stream_.get());
    }
    // The capture must end even if enqueue() failed.
    cudaGraph_t captured = nullptr;
    const cudaError_t error = cudaStreamEndCapture(stream_.get(), &captured);
    const Owned<cudaGraph_t> nodes(captured);
    if (!status.ok()) return status;
    if (error != cudaSuccess) return CudaStatus(error, "cudaStreamEndCapture");
    cudaGraphExec_t executable = nullptr;
    status = CudaStatus(cudaGraphInstantiate(&executable, nodes.get(), 0),
                        "cudaGraphInstantiate");
    graph->reset(executable);
    return status;
  }

  // Measures the work that work() enqueues. Returns the microseconds per
  // repetition. One call of work() enqueues `launches` repetitions. Calls
  // prepare() before each call of work().
  template <typename Prepare, typename Work>
  absl::StatusOr<Quantiles> Measure(const Options& options, int launches,
                                    Prepare prepare, Work work) {
    std::vector<double> times;
    // The first run warms up. The second run shows how many runs fit into the
    // limit.
    absl::Status status = Repeat(1, prepare, work, &times);
    if (status.ok()) status = Repeat(1, prepare, work, &times);
    if (!status.ok()) return status;
    const double fit =
        absl::ToDoubleMicroseconds(options.limit) / std::max(times[1], 1e-3);
    const int repeats = static_cast<int>(std::clamp<double>(
        fit, std::min(kFewestRepeats, options.repeats), options.repeats));
    times.clear();
    status = Repeat(repeats, prepare, work, &times);
    if (!status.ok()) return status;
    for (double& time : times) time /= launches;
    return Quantiles::Of(std::move(times));
  }

  // Runs prepare() and work() `repeats` times. Appends to `times` the
  // microseconds that each work() took.
  template <typename Prepare, typename Work>
  absl::Status Repeat(int repeats, Prepare prepare, Work work,
                      std::vector<double>* times) {
    std::vector<Owned<cudaEvent_t>> events;
    const auto record = [&] {
      cudaEvent_t event = nullptr;
      cudaError_t error = cudaEventCreate(&event);
      if (error == cudaSuccess) error = cudaEventRecord(event, stream_.get());
      events.emplace_back(event);
      return CudaStatus(error, "cudaEventRecord");
    };
    absl::Status status;
    for (int i = 0; i < repeats && status.ok(); ++i) {
      status = prepare();
      if (status.ok()) status = record();
      if (status.ok()) status = work();
      if (status.ok()) status = record();
    }
    const cudaError_t error = cudaStreamSynchronize(stream_.get());
    if (!status.ok()) return status;
    if (error != cudaSuccess) return CudaStatus(error, "the timed work");
    for (int i = 0; i < repeats; ++i) {
      float ms = 0;
      status = CudaStatus(cudaEventElapsedTime(&ms, events[2 * i].get(),
                                               events[2 * i + 1].get()),
                          "cudaEventElapsedTime");
      if (!status.ok()) return status;
      times->push_back(ms * 1e3);
    }
    return absl::OkStatus();
  }

  int gpu_ = 0;
  Owned<cudaStream_t> stream_;
  Owned<void*> flush_;  // Null before the first Cold().
};

}  // namespace

absl::StatusOr<std::unique_ptr<GpuTimer>> GpuTimer::Create() {
  auto timer = std::make_unique<CudaGpuTimer>();
  const absl::Status status = timer->Init();
  if (!status.ok()) return status;
  return timer;
}

}  // namespace sfmamba::kernels
