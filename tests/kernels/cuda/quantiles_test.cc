#include "kernels/cuda/quantiles.h"

#include "gtest/gtest.h"

namespace sfmamba::kernels {
namespace {

TEST(QuantilesTest, OfElevenValuesInAnyOrder) {
  const Quantiles quantiles = Quantiles::Of({10, 1, 0, 9, 2, 8, 3, 7, 4, 6, 5});
  EXPECT_EQ(quantiles.p10, 1);
  EXPECT_EQ(quantiles.median, 5);
  EXPECT_EQ(quantiles.p90, 9);
}

TEST(QuantilesTest, OfOneValue) {
  const Quantiles quantiles = Quantiles::Of({3});
  EXPECT_EQ(quantiles.p10, 3);
  EXPECT_EQ(quantiles.median, 3);
  EXPECT_EQ(quantiles.p90, 3);
}

TEST(QuantilesTest, AnOutlierLeavesTheMedian) {
  EXPECT_EQ(Quantiles::Of({2, 1000, 1}).median, 2);
}

}  // namespace
}  // namespace sfmamba::kernels
