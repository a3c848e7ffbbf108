#include "server/repository/precision/fast_precision.h"

#include "gtest/gtest.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::repository {
namespace {

// On a CPU with AVX512-BF16 but no AMX, either precision may be faster.
TEST(FastPrecisionTest, IsBf16WithAmxAndFp32WithoutNativeBf16) {
  const model::Precision fast = FastPrecision();
  if (kernels::HasAmxBf16()) {
    EXPECT_EQ(fast, model::Precision::kBFloat16);
  }
  if (!kernels::HasAvx512Bf16()) {
    EXPECT_EQ(fast, model::Precision::kFloat32);
  }
  EXPECT_EQ(fast, FastPrecision());
}

}  // namespace
}  // namespace sfmamba::repository
