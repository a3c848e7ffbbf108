#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "ATen/core/Tensor.h"
#include "ATen/ops/add.h"
#include "ATen/ops/zeros.h"
#include "absl/time/time.h"
#include "c10/cuda/CUDACachingAllocator.h"
#include "c10/cuda/CUDAStream.h"
#include "gtest/gtest.h"
#include "model/engine/device_runtime.h"
#include "model/vision_model.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/model/testing.h"
#include "tests/testing/patience.h"
#include "tests/testing/run_model.h"

namespace sfmamba {
namespace {

constexpr double kToleranceMib = 32;

double FreeMib() {
  size_t available = 0, all = 0;
  EXPECT_EQ(cudaMemGetInfo(&available, &all), cudaSuccess);
  return double(available) / (1 << 20);
}

// When a model is unloaded, its contexts must free their graphs, their buffers
// and the workspaces of libraries.
TEST(GpuMemoryTest, LoadingAndUnloadingLeavesNothing) {
  if (!kernels::HasDevice()) GTEST_SKIP() << "no GPU";
  constexpr int kLoads = 20;
  model::ModelOptions options;
  options.gpus = {0};
  double first = 0;
  for (int i = 0; i < kLoads; ++i) {
    {
      const auto model = model::MakeModel(model::SmallModel(), options);
      for (int index = 0; index < model->contexts(); ++index) {
        EXPECT_TRUE(model::MakeContext(*model, index)->Prepare(1, 8).ok());
      }
    }
    const double free = FreeMib();
    std::printf("load %d: %.0f MiB free\n", i, free);
    // What libraries allocate in the first load stays allocated until the
    // process ends.
    if (i == 1) first = free;
  }
  EXPECT_GE(FreeMib(), first - kToleranceMib);
}

// libtorch frees no memory while a graph is recorded on the GPU.
TEST(GpuMemoryTest, ContextsThatEndWhileOthersRecordGiveTheirMemoryBack) {
  if (!kernels::HasDevice()) GTEST_SKIP() << "no GPU";
  constexpr int kContexts = 50;
  model::ModelOptions options;
  options.gpus = {0};
  const auto model = model::MakeModel(model::SmallModel(), options);
  const auto prepare = [&](int context, int images) {
    EXPECT_TRUE(model::MakeContext(*model, context)->Prepare(1, images).ok());
  };
  // What libraries allocate for the first contexts stays allocated until the
  // process ends.
  for (const int context : {0, 1}) prepare(context, 16);
  const double first = FreeMib();
  std::atomic<bool> stop{false};
  std::thread recorder([&] {
    while (!stop) prepare(0, 16);
  });
  for (int i = 0; i < kContexts; ++i) prepare(1, 8);
  stop = true;
  Join(recorder, "the recording context", absl::Minutes(2));
  const double last = FreeMib();
  std::printf("%.0f MiB free before, %.0f after\n", first, last);
  EXPECT_GE(last, first - kToleranceMib);
}

// libtorch caches the memory of destroyed graphs for later graphs. It is freed
// when the stream is destroyed.
TEST(GpuMemoryTest, AFailedRecordingHarmsNoLaterOne) {
  if (!kernels::HasDevice()) GTEST_SKIP() << "no GPU";
  constexpr int kValues = 4 << 20;
  double first = 0, last = 0;
  for (int i = 0; i < 10; ++i) {
    {
      const auto stream = engine::Devices()->MakeStream(0);
      const auto scope = stream->Enter();
      const at::Tensor input = stream->AllocateDevice(kValues, at::kFloat);
      input.fill_(3);
      const auto failed = stream->Record(input, [](const at::Tensor& x) {
        const at::Tensor y = at::add(x, x);
        // A thread must not wait for a stream that is being recorded, so this
        // recording fails.
        cudaStreamSynchronize(c10::cuda::getCurrentCUDAStream().stream());
        return y;
      });
      EXPECT_FALSE(failed.ok());
      for (int run = 0; run < 3; ++run) {
        const auto graph = stream->Record(
            input, [](const at::Tensor& x) { return at::add(x, x); });
        ASSERT_TRUE(graph.ok()) << graph.status();
        const at::Tensor answers = (*graph)->Replay();
        EXPECT_EQ(answers[kValues - 1].item<float>(), 6);
      }
      EXPECT_TRUE(stream->Check().ok());
    }
    last = FreeMib();
    std::printf("round %d: %.0f MiB free\n", i, last);
    if (i == 1) first = last;
  }
  EXPECT_GE(last, first - kToleranceMib);
}

// Adds a conditional handle without a node to the graph that is being recorded.
// Such a graph cannot be made executable.
void SpoilRecordedGraph() {
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamGetCaptureInfo(c10::cuda::getCurrentCUDAStream().stream(),
                                     &status,
                                     /*id_out=*/nullptr, &graph),
            cudaSuccess);
  cudaGraphConditionalHandle unused;
  ASSERT_EQ(cudaGraphConditionalHandleCreate(&unused, graph), cudaSuccess);
}

// A recorded graph cannot be made executable if the GPU has no memory left. The
// test causes this failure in another way, by spoiling the graph.
TEST(GpuMemoryTest, AGraphThatCannotBeMadeExecutableHarmsNoOtherOne) {
  if (!kernels::HasDevice()) GTEST_SKIP() << "no GPU";
  constexpr int kValues = 4 << 20;
  const auto twice = [](const at::Tensor& x) { return at::add(x, x); };
  const auto expect_six = [](engine::DeviceGraph& graph) {
    EXPECT_EQ(graph.Replay()[kValues - 1].item<float>(), 6);
  };
  for (int i = 0; i < 3; ++i) {
    const auto stream = engine::Devices()->MakeStream(0);
    const auto scope = stream->Enter();
    const at::Tensor input = stream->AllocateDevice(kValues, at::kFloat);
    input.fill_(3);
    const auto before = stream->Record(input, twice);
    ASSERT_TRUE(before.ok()) << before.status();
    const auto failed = stream->Record(input, [&](const at::Tensor& x) {
      SpoilRecordedGraph();
      return twice(x);
    });
    EXPECT_FALSE(failed.ok());
    const auto after = stream->Record(input, twice);
    ASSERT_TRUE(after.ok()) << after.status();
    // If memory was released by mistake, this new tensor gets it.
    c10::cuda::CUDACachingAllocator::emptyCache();
    const at::Tensor other = at::zeros({4 * kValues}, input.options());
    for (int run = 0; run < 2; ++run) {
      expect_six(**before);
      expect_six(**after);
    }
    EXPECT_EQ(other.count_nonzero().item<int64_t>(), 0);
    EXPECT_TRUE(stream->Check().ok());
  }
}

}  // namespace
}  // namespace sfmamba
