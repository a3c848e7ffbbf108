#include "kernels/pixels/fixed_point_resize.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

constexpr int kRows = ResizeRowsArgs::kRowsAtOnce;
constexpr int kGuard = 64;
constexpr int32_t kOne = 1 << kWeightFractionBits;

class FixedPointResizeTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, FixedPointResizeTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

std::vector<uint8_t> Bytes(size_t size, std::mt19937& random) {
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) {
    // Many values are at the ends of the range, where sums are largest.
    const uint32_t value = random();
    byte = value % 4 == 0 ? 0 : value % 4 == 1 ? 255 : value >> 8;
  }
  return bytes;
}

// Returns random weights whose magnitudes add up to less than 2^23.
FixedPointTaps Taps(int outputs, int inputs, int max_count,
                    std::mt19937& random) {
  FixedPointTaps taps(outputs, max_count);
  for (int i = 0; i < outputs; ++i) {
    const int count =
        1 + static_cast<int>(random() % std::min(inputs, max_count));
    const int first = random() % (inputs - count + 1);
    std::vector<int32_t> weights(count);
    for (int32_t& weight : weights) {
      const int32_t limit = 2 * kOne / count - 1;
      weight = static_cast<int32_t>(random() % (2u * limit + 1)) - limit;
    }
    if (random() % 4 == 0) {  // Use the extreme weights.
      std::fill(weights.begin(), weights.end(), 0);
      weights[random() % count] = random() % 2 ? 2 * kOne - 1 : 1 - 2 * kOne;
    }
    taps.Set(i, first, weights.data(), count);
  }
  return taps;
}

uint8_t Rounded(int64_t sum) {
  return std::clamp<int64_t>((sum + kOne / 2) >> kWeightFractionBits, 0, 255);
}

void ExpectGuard(const std::vector<uint8_t>& out) {
  EXPECT_EQ(std::vector<uint8_t>(out.end() - kGuard, out.end()),
            std::vector<uint8_t>(kGuard, 7));
}

struct Case {
  int outputs, inputs, max_count;
};

constexpr Case kCases[] = {{1, 1, 1},    {1, 2, 2},     {2, 5, 3},
                           {3, 9, 4},    {4, 9, 5},     {5, 16, 8},
                           {6, 40, 9},   {7, 300, 130}, {224, 250, 5},
                           {33, 64, 64}, {65, 100, 7}};

TEST_P(FixedPointResizeTest, RowsAreTheSumsInWideIntegers) {
  std::mt19937 random(1);
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.outputs << " of " << c.inputs);
    const FixedPointTaps taps = Taps(c.outputs, c.inputs, c.max_count, random);
    // Each input buffer ends right after the last byte that may be read, so
    // that a sanitizer finds reads beyond it.
    std::vector<std::vector<uint8_t>> in, out;
    ResizeRowsArgs args;
    args.taps = &taps;
    for (int row = 0; row < kRows; ++row) {
      in.push_back(Bytes(ReadableRowBytes(taps), random));
      out.emplace_back(3 * c.outputs + kGuard, 7);
    }
    for (int row = 0; row < kRows; ++row) {
      args.in[row] = in[row].data();
      args.out[row] = out[row].data();
    }
    ResizeRows(args, GetParam());
    for (int row = 0; row < kRows; ++row) {
      ExpectGuard(out[row]);
      for (int i = 0; i < c.outputs; ++i) {
        for (int channel = 0; channel < 3; ++channel) {
          int64_t sum = 0;
          for (int k = 0; k < taps.count(i); ++k) {
            sum += int64_t{taps.weights(i)[k]} *
                   in[row][3 * (taps.first(i) + k) + channel];
          }
          ASSERT_EQ(out[row][3 * i + channel], Rounded(sum))
              << "row " << row << ", pixel " << i << ", channel " << channel;
        }
      }
    }
  }
}

TEST_P(FixedPointResizeTest, ARowGivenTwiceIsWrittenOnce) {
  std::mt19937 random(2);
  const FixedPointTaps taps = Taps(9, 20, 6, random);
  const std::vector<uint8_t> in = Bytes(ReadableRowBytes(taps), random);
  std::vector<uint8_t> expected(27), out(27 + kGuard, 7);
  ResizeRowsArgs args;
  args.taps = &taps;
  std::fill_n(args.in, kRows, in.data());
  std::fill_n(args.out, kRows, expected.data());
  ResizeRowsScalar(args);
  std::fill_n(args.out, kRows, out.data());
  ResizeRows(args, GetParam());
  ExpectGuard(out);
  out.resize(27);
  EXPECT_EQ(out, expected);
}

TEST_P(FixedPointResizeTest, CombinedRowsAreTheSumsInWideIntegers) {
  std::mt19937 random(3);
  for (int size : {1, 3, 31, 32, 33, 63, 64, 65, 100, 672, 1500, 2049}) {
    for (int count : {1, 2, 3, 4, 5, 8, 31, 130}) {
      SCOPED_TRACE(testing::Message() << count << " rows of " << size);
      FixedPointTaps taps = Taps(3, count, count, random);
      std::vector<std::vector<uint8_t>> rows;
      std::vector<const uint8_t*> in;
      for (int k = 0; k < count; ++k) rows.push_back(Bytes(size, random));
      for (int output = 0; output < taps.outputs(); ++output) {
        in.clear();
        for (int k = 0; k < taps.count(output); ++k) {
          in.push_back(rows[taps.first(output) + k].data());
        }
        std::vector<uint8_t> out(size + kGuard, 7);
        CombineRows({&taps, output, in.data(), size, out.data()}, GetParam());
        ExpectGuard(out);
        for (int x = 0; x < size; ++x) {
          int64_t sum = 0;
          for (int k = 0; k < taps.count(output); ++k) {
            sum += int64_t{taps.weights(output)[k]} * in[k][x];
          }
          ASSERT_EQ(out[x], Rounded(sum)) << "column " << x;
        }
      }
    }
  }
}

TEST(FixedPointTapsTest, WhatMayBeReadIsWholeGroupsOfPixels) {
  FixedPointTaps taps(2, 5);
  const int32_t weights[] = {kOne, 0, 0, 0, 0};
  taps.Set(0, 0, weights, 5);
  EXPECT_EQ(ReadableRowBytes(taps), 3 * 8 + 4);
  taps.Set(1, 7, weights, 4);
  EXPECT_EQ(ReadableRowBytes(taps), 3 * 11 + 4);
}

}  // namespace
}  // namespace sfmamba::kernels
