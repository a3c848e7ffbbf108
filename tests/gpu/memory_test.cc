#include <cuda_runtime_api.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/model/testing.h"
#include "tests/testing/run_model.h"

namespace sfmamba {
namespace {

double FreeMib() {
  size_t available = 0, all = 0;
  EXPECT_EQ(cudaMemGetInfo(&available, &all), cudaSuccess);
  return double(available) / (1 << 20);
}

// A model's contexts give back graphs, buffers and the workspaces of libraries.
TEST(GpuMemoryTest, LoadingAndUnloadingLeavesNothing) {
  if (!kernels::HasDevice()) GTEST_SKIP() << "no GPU";
  constexpr int kLoads = 20;
  constexpr double kToleranceMib = 32;
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
    // Libraries keep what the first load makes until the process ends.
    if (i == 1) first = free;
  }
  EXPECT_GE(FreeMib(), first - kToleranceMib);
}

}  // namespace
}  // namespace sfmamba
