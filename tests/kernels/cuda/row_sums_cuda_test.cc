#include "tests/kernels/cuda/row_sums_cuda.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "tests/kernels/cuda/device_memory.h"

namespace sfmamba::kernels {
namespace {

template <typename T>
class RowSumsCudaTest : public testing::Test {};
using Types = testing::Types<float, BFloat16, Float16>;
TYPED_TEST_SUITE(RowSumsCudaTest, Types);

TYPED_TEST(RowSumsCudaTest, SumsEachRow) {
  for (const int columns : {1, 31, 64, 200}) {
    const int rows = 5;
    std::vector<TypeParam> values;
    for (int i = 0; i < rows * columns; ++i) {
      values.push_back(TypeParam(i % 17 - i / columns));
    }
    const DeviceArray<TypeParam> x(values);
    const DeviceArray<float> sums(rows);
    ASSERT_TRUE(
        RowSumsCuda(x.data(), rows, columns, sums.data(), TestStream()).ok());
    EXPECT_TRUE(sums.GuardsIntact());
    const std::vector<float> got = sums.ToHost();
    for (int r = 0; r < rows; ++r) {
      float want = 0;
      for (int c = 0; c < columns; ++c) want += (r * columns + c) % 17 - r;
      EXPECT_EQ(got[r], want) << "row " << r << " of " << columns;
    }
  }
}

}  // namespace
}  // namespace sfmamba::kernels
