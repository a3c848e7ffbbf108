#include "model/weights/weight_memory.h"

#include <cstdint>

#include "ATen/core/Tensor.h"
#include "gtest/gtest.h"

namespace sfmamba::weights {
namespace {

constexpr int64_t kPageValues = kHugePage / sizeof(float);

uintptr_t Address(const at::Tensor& x) {
  return reinterpret_cast<uintptr_t>(x.const_data_ptr());
}

TEST(WeightMemoryTest, HoldsWhatIsWrittenAtAnySize) {
  for (const int64_t count :
       {int64_t{0}, int64_t{1}, kPageValues / 2 - 1, kPageValues / 2,
        kPageValues, kPageValues + 1, 3 * kPageValues - 1}) {
    const at::Tensor weights = EmptyWeights(count);
    ASSERT_EQ(weights.sizes(), at::IntArrayRef({count}));
    ASSERT_EQ(weights.scalar_type(), at::kFloat);
    float* const values = weights.data_ptr<float>();
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(values[i], i);
  }
}

TEST(WeightMemoryTest, LargeOnesBeginWithAHugePage) {
  for (const int64_t count : {kPageValues / 2, 5 * kPageValues + 7}) {
    EXPECT_EQ(Address(EmptyWeights(count)) % kHugePage, 0) << count;
  }
}

}  // namespace
}  // namespace sfmamba::weights
