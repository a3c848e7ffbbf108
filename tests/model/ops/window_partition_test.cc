#include "model/ops/window_partition.h"

#include "ATen/ops/arange.h"
#include "ATen/ops/equal.h"
#include "gtest/gtest.h"

namespace sfmamba::ops {
namespace {

// Returns a map of two images, three rows and five columns. Its only channel
// contains the token's number, starting at 1.
at::Tensor Map() { return at::arange(1, 31, at::kFloat).view({2, 3, 5, 1}); }

std::vector<float> Values(const at::Tensor& x) {
  const at::Tensor values = x.contiguous();
  const float* data = values.const_data_ptr<float>();
  return std::vector<float>(data, data + values.numel());
}

TEST(WindowTest, CutsRowByRowAndPadsRightAndBelow) {
  const at::Tensor windows = WindowPartition(Map(), {3, 5, 2, 3});
  ASSERT_EQ(windows.sizes(), at::IntArrayRef({8, 6, 1}));
  EXPECT_EQ(Values(windows[0]), (std::vector<float>{1, 2, 3, 6, 7, 8}));
  EXPECT_EQ(Values(windows[1]), (std::vector<float>{4, 5, 0, 9, 10, 0}));
  EXPECT_EQ(Values(windows[2]), (std::vector<float>{11, 12, 13, 0, 0, 0}));
  EXPECT_EQ(Values(windows[7]), (std::vector<float>{29, 30, 0, 0, 0, 0}));
}

TEST(WindowTest, JoinsWhatWasCut) {
  for (const WindowGrid& grid :
       {WindowGrid{3, 5, 2, 3}, WindowGrid{3, 5, 3, 5}, WindowGrid{3, 5, 4, 4},
        WindowGrid{3, 5, 1, 1}, WindowGrid{3, 5, 8, 8}}) {
    EXPECT_TRUE(
        at::equal(WindowReverse(WindowPartition(Map(), grid), grid), Map()))
        << grid.height << "x" << grid.width;
  }
}

TEST(WindowTest, OneWindowTakesTheMapsMemory) {
  const at::Tensor map = Map();
  EXPECT_EQ(WindowPartition(map, {3, 5, 3, 5}).data_ptr(), map.data_ptr());
}

}  // namespace
}  // namespace sfmamba::ops
