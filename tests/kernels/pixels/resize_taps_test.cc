#include "kernels/pixels/resize_taps.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::kernels {
namespace {

std::vector<double> Resize(const std::vector<double>& in, int out_size) {
  std::vector<double> out;
  const int last = static_cast<int>(in.size()) - 1;
  for (int i = 0; i < out_size; ++i) {
    const double source = std::max((i + 0.5) * in.size() / out_size - 0.5, 0.0);
    const int low = std::min(static_cast<int>(source), last);
    const double fraction = source - low;
    out.push_back((1 - fraction) * in[low] +
                  fraction * in[std::min(low + 1, last)]);
  }
  return out;
}

std::vector<double> Apply(const ResizeTaps& taps,
                          const std::vector<double>& in) {
  std::vector<double> out(taps.index.size() / taps.count);
  for (int i = 0; i < out.size(); ++i) {
    for (int t = 0; t < taps.count; ++t) {
      const int tap = i * taps.count + t;
      out[i] += taps.weight[tap] * in[taps.index[tap]];
    }
  }
  return out;
}

TEST(ResizeTapsTest, EqualsTwoResizesInARow) {
  for (int size : {1, 2, 5, 32, 171}) {
    std::vector<double> in(size);
    for (int i = 0; i < size; ++i) in[i] = std::sin(1.7 * i);
    for (int middle_size : {1, 3, 32, 171, 683}) {
      for (int out_size : {1, 7, 32, 640, 1500}) {
        const ResizeTaps taps = ComposeResizes(size, middle_size, out_size);
        const std::vector<double> expected =
            Resize(Resize(in, middle_size), out_size);
        const std::vector<double> out = Apply(taps, in);
        ASSERT_EQ(out.size(), out_size);
        for (int i = 0; i < out_size; ++i) {
          // Source positions in fp32 are exact to about 1e-4 of a sample.
          EXPECT_NEAR(out[i], expected[i], 3e-4)
              << size << " to " << middle_size << " to " << out_size;
        }
      }
    }
  }
}

TEST(ResizeTapsTest, NeedsAsFewSamplesAsItCan) {
  EXPECT_EQ(ComposeResizes(9, 9, 9).count, 1);
  EXPECT_EQ(ComposeResizes(9, 36, 36).count, 2);
  EXPECT_EQ(ComposeResizes(9, 9, 36).count, 2);
  EXPECT_EQ(ComposeResizes(9, 36, 33).count, 3);
  EXPECT_EQ(ComposeResizes(36, 9, 10).count, 4);
}

TEST(ResizeTapsTest, EqualSizesCopy) {
  const ResizeTaps taps = ComposeResizes(3, 3, 3);
  EXPECT_EQ(taps.index, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(taps.weight, (std::vector<float>{1, 1, 1}));
}

TEST(ResizeTapsTest, SpareTapsRepeatASample) {
  const ResizeTaps taps = ComposeResizes(4, 16, 16);
  EXPECT_EQ(taps.count, 2);
  EXPECT_EQ(taps.index[0], 0);
  EXPECT_EQ(taps.weight[0], 1);
  EXPECT_EQ(taps.index[1], 0);
  EXPECT_EQ(taps.weight[1], 0);
}

}  // namespace
}  // namespace sfmamba::kernels
