#include "model/tensor_memory.h"

#include <cstdint>
#include <new>
#include <thread>

#include "ATen/Functions.h"
#include "gtest/gtest.h"
#include "model/engine/tensor_account.h"
#include "model/engine/unkept_tensors.h"

namespace sfmamba::model {
namespace {

// The number of floats in a large tensor. For this size, malloc() always maps
// new memory, which contains zeros.
constexpr int64_t kLarge = 16 << 20;

class TensorMemoryTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { KeepTensorMemory(); }
};

// Makes a tensor that contains only sevens and frees it.
void UseMemory() { at::full({kLarge}, 7.0f); }

// Returns a value of a newly allocated tensor, which is not initialised.
float Content() { return at::empty({kLarge})[kLarge - 1].item<float>(); }

TEST_F(TensorMemoryTest, ALargeTensorTakesTheMemoryOfTheLast) {
  UseMemory();
  EXPECT_EQ(Content(), 7);
  EXPECT_EQ(Content(), 7);
}

TEST_F(TensorMemoryTest, TensorsThatLiveShareNothing) {
  const at::Tensor a = at::zeros({kLarge}), b = at::ones({kLarge});
  EXPECT_EQ(a.sum().item<float>(), 0);
  EXPECT_EQ(b.sum().item<float>(), static_cast<float>(kLarge));
}

TEST_F(TensorMemoryTest, WhatIsResizedKeepsItsValues) {
  at::Tensor x = at::ones({kLarge});
  x.resize_({2 * kLarge});
  x.narrow(0, kLarge, kLarge).zero_();
  EXPECT_EQ(x.sum().item<float>(), static_cast<float>(kLarge));
  EXPECT_EQ(at::ones({16}).resize_({kLarge})[0].item<float>(), 1.0f);
}

TEST_F(TensorMemoryTest, WhatIsMadeOnceIsNotKept) {
  const engine::UnkeptTensors unkept;
  UseMemory();
  EXPECT_EQ(Content(), 0);
}

TEST_F(TensorMemoryTest, AnAccountKnowsTheMostThatAThreadsTensorsHadAtOnce) {
  const at::Tensor before = at::zeros({kLarge});
  engine::TensorAccount account(/*most_bytes=*/int64_t{12} * kLarge,
                                [] { return false; });
  { const at::Tensor a = at::zeros({kLarge}), b = at::zeros({kLarge}); }
  std::thread([] { UseMemory(); }).join();  // Another thread counts, too.
  const at::Tensor c = at::zeros({kLarge});
  EXPECT_EQ(account.peak(), int64_t{8} * kLarge);
  const at::Tensor d = at::zeros({2 * kLarge});
  EXPECT_THROW(at::zeros({kLarge}), std::bad_alloc);
  EXPECT_EQ(account.peak(), int64_t{12} * kLarge);
}

TEST_F(TensorMemoryTest, AnAccountEndsWhatIsStopped) {
  bool stop = false;
  engine::TensorAccount account(/*most_bytes=*/int64_t{1} << 40,
                                [&stop] { return stop; });
  UseMemory();
  EXPECT_FALSE(account.stopped());
  stop = true;
  EXPECT_THROW(UseMemory(), std::bad_alloc);
  EXPECT_TRUE(account.stopped());
}

TEST_F(TensorMemoryTest, WhatWasUsedLatelyIsNotReleased) {
  UseMemory();
  ReleaseIdleTensorMemory();
  EXPECT_EQ(Content(), 7);
}

}  // namespace
}  // namespace sfmamba::model
