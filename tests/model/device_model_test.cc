// Tests whole models on an emulated GPU: what their contexts prepare, record
// and free, and how batches end after failures.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "kernels/cuda/capture_mutex.h"
#include "model/engine/device_context.h"
#include "model/engine/device_health.h"
#include "model/engine/device_runtime.h"
#include "model/engine/graph_plan.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/tuning/scan_plan_chooser.h"
#include "model/vision_model.h"
#include "tests/model/device_model_fixture.h"
#include "tests/model/emulated_device.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/patience.h"
#include "tests/testing/run_model.h"

namespace sfmamba::model {
namespace {

TEST_F(DeviceModelTest, IsOnTheGpu) {
  const auto model = MakeModel(Config(), OnGpu());
  EXPECT_EQ(model->device(), "an emulated GPU");
  EXPECT_EQ(model->contexts(), 2);
  RunInfo info;
  ExpectRight(*MakeContext(*model), 9, &info);
  EXPECT_EQ(info.padded_images, 10);
  EXPECT_GT(info.device_time, absl::ZeroDuration());
}

TEST_F(DeviceModelTest, AGpuThatThereIsNotIsRefused) {
  ModelOptions options = OnGpu();
  options.gpus = {0, 2};
  const auto model = VisionModel::Random(Config(), /*seed=*/1, options);
  EXPECT_EQ(model.status(), absl::InvalidArgumentError(
                                "GPU 2: expected one of the 2 that there are"));
}

TEST_F(DeviceModelTest, Int8IsRefused) {
  ModelConfig config = Config();
  config.precision = Precision::kInt8;
  const auto model = VisionModel::Random(config, /*seed=*/1, OnGpu());
  EXPECT_EQ(
      model.status(),
      absl::InvalidArgumentError(
          "precision: GPUs do not compute INT8, expected FP32, BF16 or FP16"));
}

TEST_F(DeviceModelTest, APreparedContextHasAllItsGraphs) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  ASSERT_TRUE(context->Prepare(1, 12).ok());
  // Pixels and values have separate graphs.
  const int all = 2 * static_cast<int>(engine::PaddedBatchSizes(12).size());
  EXPECT_EQ(recorded(), all);
  for (int count = 1; count <= 12; ++count) ExpectRight(*context, count);
  EXPECT_EQ(recorded(), all);
  EXPECT_EQ(replayed(), 12);
}

TEST_F(DeviceModelTest, AContextHasGraphsOfItsOwn) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto first = MakeContext(*model, 0), second = MakeContext(*model, 1);
  for (int run = 0; run < 2; ++run) {
    ExpectRight(*first, 3);
    ExpectRight(*second, 3);
  }
  EXPECT_EQ(recorded(), 2);
  EXPECT_EQ(replayed(), 2);
}

TEST_F(DeviceModelTest, PreparationMayLeaveOutSmallBatches) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  ASSERT_TRUE(context->Prepare(11, 11).ok());
  EXPECT_EQ(recorded(), 2);  // One for pixels, one for values.
  ExpectRight(*context, 11);
  EXPECT_EQ(recorded(), 2);
}

TEST_F(DeviceModelTest, WithoutGraphsNothingIsRecorded) {
  ModelOptions options = OnGpu();
  options.graphs = false;
  const auto model = MakeModel(Config(), options);
  const auto context = MakeContext(*model);
  ASSERT_TRUE(context->Prepare(1, 3).ok());
  ExpectRight(*context, 3);
  EXPECT_EQ(recorded(), 0);
}

TEST_F(DeviceModelTest, ALargerBatchDropsTheGraphsOfItsContext) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  ExpectRight(*context, 2);
  ExpectRight(*context, 1);
  EXPECT_EQ(emulated::graphs_alive(), 2);
  ExpectRight(*context, 3);
  EXPECT_EQ(emulated::graphs_alive(), 1);
  ExpectRight(*context, 2);
  EXPECT_EQ(recorded(), 4);
}

TEST_F(DeviceModelTest, FoldRowsLeaveBatchesUnpadded) {
  ModelOptions options = OnGpu();
  options.fold_rows = 3;
  const auto model = MakeModel(Config(), options);
  const auto context = MakeContext(*model);
  RunInfo info;
  ExpectRight(*context, 9, &info);
  EXPECT_EQ(info.padded_images, 9);
  ASSERT_TRUE(context->Prepare(1, 6).ok());  // Runs only sizes divisible by 3.
}

TEST_F(DeviceModelTest, TheRunIsDescribedBeforeItsFirstResult) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  RunInfo info;
  int done = 0;
  ASSERT_TRUE(context
                  ->Run(Images(9), &info,
                        [&](const Result&) {
                          EXPECT_EQ(info.padded_images, 10);
                          EXPECT_GT(info.device_time, absl::ZeroDuration());
                          ++done;
                        })
                  .ok());
  EXPECT_EQ(done, 9);
}

TEST_F(DeviceModelTest, LoadingAndUnloadingLeavesNothing) {
  for (int i = 0; i < 20; ++i) {
    const auto model = MakeModel(Config(), OnGpu());
    const auto first = MakeContext(*model, 0), second = MakeContext(*model, 1);
    ExpectRight(*first, 1);
    EXPECT_EQ(emulated::streams_alive(), 2);
  }
}

// ---- Failures ----

TEST_F(DeviceModelTest, WhatCannotBeRecordedIsRunAndTold) {
  absl::Mutex mu;
  std::vector<std::string> told;
  ModelOptions options = OnGpu();
  options.capture_failed = [&](const absl::Status& status) {
    absl::MutexLock lock(&mu);
    told.emplace_back(status.message());
  };
  const auto model = MakeModel(Config(), options);
  const auto context = MakeContext(*model);
  emulated::RefuseToRecord(1);
  for (int run = 0; run < 3; ++run) ExpectRight(*context, 2);
  EXPECT_EQ(told, std::vector<std::string>({"this stream cannot be recorded"}));
  EXPECT_EQ(recorded(), 0);  // There is no immediate retry.
  ExpectRight(*context, 3);  // Other sizes are not affected.
  EXPECT_EQ(recorded(), 1);
}

TEST_F(DeviceModelTest, RecordingIsTriedAgainAfterAWhile) {
  const c10::InferenceMode inference;
  const ModelConfig config = Config();
  const tuning::ScanPlanChooser chooser({"some GPU", 4, ""}, std::nullopt,
                                        false);
  weights::StateDict weights(DeterministicParameter);
  const ops::CudaImplementation cuda(EmulatedOps(), at::kCPU,
                                     {config.precision, &chooser});
  const engine::Network network(config, weights.root(), cuda);
  absl::Time now = absl::FromUnixSeconds(1000);
  engine::DeviceContext::Options options;
  options.now = [&now] { return now; };
  engine::DeviceHealth health;
  engine::DeviceContext context(network, config, *engine::Devices(), /*gpu=*/0,
                                &health, options);
  const auto run = [&] { ExpectRight(context, 1); };
  emulated::RefuseToRecord(1);
  run();
  run();
  EXPECT_EQ(recorded(), 0);
  now += engine::GraphPlan::kFirstRetry;
  run();
  EXPECT_EQ(recorded(), 1);
  run();
  EXPECT_EQ(replayed(), 1);
}

TEST_F(DeviceModelTest, ABatchThatNeedsTooMuchMemoryHarmsNoSmallerOne) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto context = MakeContext(*model);
  // Each image's pixels are followed by one byte, which describes the image's
  // layout.
  emulated::LimitMemory((int64_t{3} * kSide * kSide + 1) * 5);
  EXPECT_TRUE(
      absl::IsResourceExhausted(RunBatch(*context, Images(6)).status()));
  ExpectRight(*context, 5);
  EXPECT_TRUE(absl::IsResourceExhausted(context->Prepare(1, 16)));
  EXPECT_TRUE(context->Prepare(1, 4).ok());
  EXPECT_TRUE(model->health().ok());
}

TEST_F(DeviceModelTest, AFailedDeviceIsToldForGood) {
  const auto model = MakeModel(Config(), OnGpu());
  const auto first = MakeContext(*model, 0), second = MakeContext(*model, 1);
  ExpectRight(*first, 1);
  emulated::BreakDevice(true);
  const absl::Status failed =
      absl::InternalError("the device has failed: GPU 0: it is broken");
  EXPECT_EQ(RunBatch(*first, Images(1)).status(), failed);
  emulated::BreakDevice(false);
  EXPECT_EQ(model->health(), absl::InternalError("GPU 0: it is broken"));
  EXPECT_EQ(RunBatch(*first, Images(1)).status(), failed);
  EXPECT_EQ(RunBatch(*second, Images(1)).status(), failed);
  EXPECT_EQ(second->Prepare(1, 1), failed);
}

// ---- Several GPUs ----

ModelOptions OnTwoGpus() {
  ModelOptions options = OnGpu();
  options.gpus = {0, 1};
  options.slots_per_gpu = 1;
  return options;
}

TEST_F(DeviceModelTest, ContextsAreSpreadOverTheGpus) {
  const auto model = MakeModel(Config(), OnTwoGpus());
  EXPECT_EQ(model->contexts(), 2);
  EXPECT_EQ(model->context_device(0), "cuda:0");
  EXPECT_EQ(model->context_device(1), "cuda:1");
  EXPECT_EQ(model->device(), "2 x an emulated GPU");
}

TEST_F(DeviceModelTest, TheOtherGpusGoOnAfterOneIsLost) {
  for (const int lost : {0, 1}) {
    const auto model = MakeModel(Config(), OnTwoGpus());
    const auto first = MakeContext(*model, 0), second = MakeContext(*model, 1);
    ExpectRight(*first, 1);
    ExpectRight(*second, 1);
    emulated::BreakDevice(true, lost);
    // The GPU fails during a batch. This batch and later ones must still be
    // answered.
    for (int run = 0; run < 2; ++run) {
      ExpectRight(*first, 1);
      ExpectRight(*second, 2);
    }
    EXPECT_TRUE(model->health().ok());
    EXPECT_EQ(model->device(), "1 x an emulated GPU");
    ExpectRight(*MakeContext(*model, lost), 1);
    EXPECT_TRUE((lost == 0 ? first : second)->Prepare(1, 2).ok());
    emulated::BreakDevice(false, lost);
  }
}

TEST_F(DeviceModelTest, OnceAllGpusAreLostTheModelHasFailed) {
  const auto model = MakeModel(Config(), OnTwoGpus());
  const auto first = MakeContext(*model, 0), second = MakeContext(*model, 1);
  emulated::BreakDevice(true, 0);
  emulated::BreakDevice(true, 1);
  EXPECT_TRUE(absl::IsInternal(RunBatch(*first, Images(1)).status()));
  EXPECT_TRUE(absl::IsInternal(RunBatch(*second, Images(1)).status()));
  EXPECT_EQ(model->health(), absl::InternalError("GPU 0: it is broken"));
  EXPECT_EQ(RunBatch(*first, Images(1)).status(),
            absl::InternalError("the device has failed: GPU 1: it is broken"));
}

// ---- Several models on one GPU ----

TEST(CaptureMutexTest, IsOneForADevice) {
  EXPECT_EQ(&kernels::CaptureMutex(0), &kernels::CaptureMutex(0));
  EXPECT_NE(&kernels::CaptureMutex(0), &kernels::CaptureMutex(1));
}

TEST_F(DeviceModelTest, NoModelRecordsWhileAnotherRunsOnItsGpu) {
  const auto model = MakeModel(Config(), OnGpu());
  std::thread caller;
  {
    const absl::ReaderMutexLock running(&kernels::CaptureMutex(0));
    caller = std::thread([&] { ExpectRight(*MakeContext(*model), 1); });
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_EQ(recorded(), 0);
  }
  Join(caller, "the other caller");
  EXPECT_EQ(recorded(), 1);
}

TEST_F(DeviceModelTest, NoContextEndsWhileAnotherRecordsOnItsGpu) {
  const auto model = MakeModel(Config(), OnGpu());
  std::thread caller;
  {
    const absl::MutexLock recording(&kernels::CaptureMutex(0));
    caller = std::thread([&] { MakeContext(*model).reset(); });
    absl::SleepFor(absl::Milliseconds(50));
    EXPECT_EQ(emulated::streams_alive(), 1);
  }
  Join(caller, "the other caller");
  EXPECT_EQ(emulated::streams_alive(), 0);
}

TEST_F(DeviceModelTest, TwoModelsOfNewSizesAtATimeAreRight) {
  const auto one = MakeModel(Config(), OnGpu());
  const auto other = MakeModel(Config(), OnGpu());
  const auto run = [this](VisionModel& model) {
    const auto context = MakeContext(model);
    for (int count = 1; count <= 6; ++count) ExpectRight(*context, count);
  };
  std::thread caller([&] { run(*one); });
  run(*other);
  Join(caller, "the other caller");
  EXPECT_GE(recorded(), 2 * 6);
}

}  // namespace
}  // namespace sfmamba::model
