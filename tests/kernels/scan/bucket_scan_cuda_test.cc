#include "tests/kernels/scan/bucket_scan_cuda.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/scan/device_scan.h"

namespace sfmamba::kernels {
namespace {

// Converts [rows * tokens, columns] to [rows, columns, tokens].
template <typename T>
std::vector<T> ChannelMajor(const Matrix<T>& matrix, int rows) {
  const int64_t tokens = matrix.rows() / rows;
  std::vector<T> values;
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < matrix.columns(); ++c) {
      for (int64_t i = 0; i < tokens; ++i) {
        values.push_back(matrix.at(row * tokens + i, c));
      }
    }
  }
  return values;
}

template <typename T>
Matrix<T> TokenMajor(const std::vector<T>& values, int64_t all_tokens,
                     int columns, int rows) {
  Matrix<T> matrix(all_tokens, columns);
  const int64_t tokens = all_tokens / rows;
  size_t at = 0;
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < columns; ++c) {
      for (int64_t i = 0; i < tokens; ++i) {
        matrix.at(row * tokens + i, c) = values[at++];
      }
    }
  }
  return matrix;
}

// Expects agreement for `count` sequences of `length` tokens in `rows` rows.
template <typename T>
void ExpectAgreement(int count, int length, int rows, int channels,
                     int states = 8) {
  SCOPED_TRACE(testing::Message()
               << count << " x " << length << " in " << rows << " rows");
  const ScanProblem<T> scan = MakeScan<T>(count * length, channels, states);
  const DeviceArray<T> u(ChannelMajor(scan.u, rows)),
      dt(ChannelMajor(scan.dt, rows)), B(ChannelMajor(scan.B, rows)),
      C(ChannelMajor(scan.C, rows)), y(u.size());
  const DeviceArray<float> A(scan.A), D(scan.D), bias(scan.bias);
  const BucketScanArgs<T> args = {rows,       count / rows, length,    channels,
                                  states,     u.data(),     dt.data(), B.data(),
                                  C.data(),   y.data(),     A.data(),  D.data(),
                                  bias.data()};
  ASSERT_EQ(BucketScanCuda(args, TestStream()), absl::OkStatus());
  ExpectScanned(TokenMajor(y.ToHost(), count * length, channels, rows),
                scan.Reference({count, length}), 1e-5);
  EXPECT_TRUE(y.GuardsIntact());
}

class BucketScanTest : public DeviceTest {};

TEST_F(BucketScanTest, AgreesWithFp64InEveryBucket) {
  for (const int length : {1, 2, 49, 128, 129, 256, 257, 512, 513, 1024}) {
    ExpectAgreement<float>(1, length, 1, 2);
  }
  ExpectAgreement<float>(1, 2049, 1, 1);
}

TEST_F(BucketScanTest, EveryFoldGivesTheSame) {
  for (const int rows : {1, 2, 3, 6}) {
    ExpectAgreement<float>(6, 49, rows, 3);
    ExpectAgreement<float>(6, 196, rows, 2);
  }
  ExpectAgreement<float>(11, 196, 1, 1);
}

TEST_F(BucketScanTest, AgreesWithFp64InHalfPrecisionAndFor16States) {
  ExpectAgreement<BFloat16>(4, 51, 2, 5);
  ExpectAgreement<Float16>(4, 51, 2, 5);
  ExpectAgreement<BFloat16>(2, 51, 1, 3, 16);
}

TEST(BucketOfTest, RoundsUpToPowersOfTwo) {
  const auto slots = [](int tokens) {
    return BucketOf(tokens).threads * BucketOf(tokens).items;
  };
  EXPECT_EQ(slots(49), 128);
  EXPECT_EQ(slots(196), 256);
  EXPECT_EQ(slots(392), 512);
  EXPECT_EQ(slots(784), 1024);
  EXPECT_EQ(slots(1568), 2048);
  EXPECT_EQ(slots(25088), 2048);
}

}  // namespace
}  // namespace sfmamba::kernels
