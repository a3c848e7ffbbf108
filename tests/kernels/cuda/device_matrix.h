#ifndef SFMAMBA_TESTS_KERNELS_CUDA_DEVICE_MATRIX_H_
#define SFMAMBA_TESTS_KERNELS_CUDA_DEVICE_MATRIX_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/float16.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {

// Skips tests of CUDA kernels if there is neither a GPU nor the emulator.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << "no GPU";
  }
};

using ElementTypes = testing::Types<float, BFloat16, Float16>;

// A copy of a Matrix on the device. Like the Matrix, it has guards of NaN
// before, after and between its rows.
template <typename T>
class DeviceMatrix {
 public:
  explicit DeviceMatrix(const Matrix<T>& matrix)
      : matrix_(matrix), values_(WithMargins(matrix)) {}

  T* data() const { return values_.data() + kMargin; }
  T* row(int64_t i) const { return data() + i * stride(); }
  int64_t stride() const { return matrix_.stride(); }

  // Returns the current values. The test fails if a guard has changed.
  Matrix<T> ToHost() const {
    const std::vector<T> values = values_.ToHost();
    Matrix<T> now = matrix_;
    for (int64_t i = 0; i < now.rows(); ++i) {
      std::copy_n(values.data() + kMargin + i * stride(), now.columns(),
                  &now.at(i, 0));
    }
    const std::vector<T> expected = WithMargins(now);
    EXPECT_EQ(
        std::memcmp(values.data(), expected.data(), values.size() * sizeof(T)),
        0)
        << "written outside of the rows";
    EXPECT_TRUE(values_.GuardsIntact());
    return now;
  }

 private:
  // The number of guard values before the matrix, and again after it. The
  // matrix begins at a multiple of 128 bytes from the start of the allocation.
  // It is therefore aligned for all accesses of kernels.
  static constexpr int kMargin = 64;

  static std::vector<T> WithMargins(const Matrix<T>& matrix) {
    const T nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    const int64_t size = matrix.rows() * matrix.stride();
    std::vector<T> values(size + 2 * kMargin, nan);
    std::copy_n(matrix.data(), size, values.data() + kMargin);
    return values;
  }

  const Matrix<T> matrix_;
  const DeviceArray<T> values_;
};

// Converts each value to float, for reference functions that support only
// float.
template <typename T>
Matrix<float> ToFloats(const Matrix<T>& from) {
  Matrix<float> to(from.rows(), from.columns());
  for (int64_t i = 0; i < from.rows(); ++i) {
    for (int c = 0; c < from.columns(); ++c) {
      to.at(i, c) = static_cast<float>(from.at(i, c));
    }
  }
  return to;
}

// Rounds each value to T. `padding` values separate the rows of the result.
template <typename T>
Matrix<T> Rounded(const Matrix<float>& from, int padding) {
  Matrix<T> to(from.rows(), from.columns(), padding);
  for (int64_t i = 0; i < from.rows(); ++i) {
    for (int c = 0; c < from.columns(); ++c) {
      to.at(i, c) = static_cast<T>(from.at(i, c));
    }
  }
  return to;
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_CUDA_DEVICE_MATRIX_H_
