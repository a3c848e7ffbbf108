#include "model/tensor_memory.h"

#include <cstdint>

#include "ATen/Functions.h"
#include "gtest/gtest.h"
#include "model/engine/unkept_tensors.h"

namespace sfmamba::model {
namespace {

constexpr int64_t kLarge = 1 << 20;  // Floats.

class TensorMemoryTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { KeepTensorMemory(); }
};

// Makes and frees a tensor; the address of its values.
const void* MakeOnce(int64_t count) {
  const at::Tensor x = at::full({count}, 1.0f);
  EXPECT_EQ(x[count - 1].item<float>(), 1.0f);
  return x.const_data_ptr();
}

TEST_F(TensorMemoryTest, ALargeTensorTakesTheMemoryOfTheLast) {
  const void* const first = MakeOnce(kLarge);
  EXPECT_EQ(MakeOnce(kLarge), first);
  EXPECT_EQ(MakeOnce(kLarge), first);
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
  const void* const kept = MakeOnce(3 * kLarge);
  const engine::UnkeptTensors unkept;
  EXPECT_NE(MakeOnce(3 * kLarge), kept);
}

TEST_F(TensorMemoryTest, WhatWasUsedLatelyIsNotReleased) {
  const void* const first = MakeOnce(kLarge);
  ReleaseIdleTensorMemory();
  EXPECT_EQ(MakeOnce(kLarge), first);
}

}  // namespace
}  // namespace sfmamba::model
