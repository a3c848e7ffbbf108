#ifndef SFMAMBA_TESTS_KERNELS_MATRIX_H_
#define SFMAMBA_TESTS_KERNELS_MATRIX_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/base/bfloat16.h"
#include "kernels/base/float16.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Returns the name of a test's instruction set.
inline std::string IsaName(const testing::TestParamInfo<CpuIsa>& info) {
  return CpuIsaName(info.param);
}

// Aligns memory to cache lines, as a tensor library does.
template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  explicit AlignedAllocator(const AlignedAllocator<U>&) {}
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlignment); }
  bool operator==(const AlignedAllocator&) const { return true; }
  bool operator!=(const AlignedAllocator&) const { return false; }

  static constexpr std::align_val_t kAlignment{64};
};

// A [rows, columns] matrix with guards of NaN before, after and between its
// rows. If a kernel reads a guard, its result shows it. If a kernel writes one,
// GuardsIntact() fails.
template <typename T>
class Matrix {
 public:
  // `padding` values separate the rows. Models use 0.
  Matrix(int64_t rows, int columns, int padding = 5)
      : rows_(rows),
        columns_(columns),
        stride_(columns + padding),
        values_(kMargin + rows * stride_ + kMargin, Guard()) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int c = 0; c < columns; ++c) at(i, c) = static_cast<T>(0.0f);
    }
  }

  int64_t rows() const { return rows_; }
  int columns() const { return columns_; }
  int64_t stride() const { return stride_; }
  T* data() { return values_.data() + kMargin; }
  const T* data() const { return values_.data() + kMargin; }
  T& at(int64_t i, int c) { return data()[i * stride_ + c]; }
  const T& at(int64_t i, int c) const { return data()[i * stride_ + c]; }

  void FillNormal(std::mt19937& random, float mean, float deviation) {
    std::normal_distribution<float> normal(mean, deviation);
    for (int64_t i = 0; i < rows_; ++i) {
      for (int c = 0; c < columns_; ++c)
        at(i, c) = static_cast<T>(normal(random));
    }
  }

  void CopyRow(int64_t to, const Matrix& other, int64_t from) {
    std::copy_n(&other.at(from, 0), columns_, &at(to, 0));
  }

  bool RowEquals(int64_t i, const Matrix& other, int64_t other_row) const {
    return std::memcmp(&at(i, 0), &other.at(other_row, 0),
                       columns_ * sizeof(T)) == 0;
  }

  bool RowIsFinite(int64_t i) const {
    for (int c = 0; c < columns_; ++c) {
      if (!std::isfinite(static_cast<float>(at(i, c)))) return false;
    }
    return true;
  }

  // Compares all bits, including the guards.
  bool operator==(const Matrix& other) const {
    return values_.size() == other.values_.size() &&
           std::memcmp(values_.data(), other.values_.data(),
                       values_.size() * sizeof(T)) == 0;
  }

  bool GuardsIntact() const {
    Matrix guards(rows_, columns_, stride_ - columns_);
    for (int64_t i = 0; i < rows_; ++i) guards.CopyRow(i, *this, i);
    return guards == *this;
  }

 private:
  static constexpr int kMargin = 64;

  static T Guard() {
    return static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  }

  int64_t rows_;
  int columns_;
  int64_t stride_;
  std::vector<T, AlignedAllocator<T>> values_;
};

// The largest relative error of rounding to T. It is 0 for float and double,
// because the parameter `scaled` of ExpectClose() allows for their rounding.
template <typename T>
constexpr double kUnit = 0;
template <>
constexpr double kUnit<BFloat16> = 1.0 / 256;
template <>
constexpr double kUnit<Float16> = 1.0 / 2048;

// Expects that `actual` differs from `expected` by at most `scaled` times the
// largest expected magnitude. BFloat16 and Float16 values may also differ by
// one rounding to T.
template <typename T>
void ExpectClose(const Matrix<T>& actual, const Matrix<double>& expected,
                 double scaled) {
  const double relative = kUnit<T>;
  double largest = 0;
  for (int64_t i = 0; i < expected.rows(); ++i) {
    for (int c = 0; c < expected.columns(); ++c) {
      largest = std::max(largest, std::abs(expected.at(i, c)));
    }
  }
  for (int64_t i = 0; i < expected.rows(); ++i) {
    for (int c = 0; c < expected.columns(); ++c) {
      const double want = expected.at(i, c);
      const double error = std::abs(static_cast<float>(actual.at(i, c)) - want);
      // This form of the comparison is also true for NaN.
      if (!(error <= scaled * largest + relative * std::abs(want))) {
        ADD_FAILURE() << "row " << i << " column " << c << ": got "
                      << static_cast<float>(actual.at(i, c)) << ", expected "
                      << want << ", largest " << largest;
        return;
      }
    }
  }
}

template <typename T>
Matrix<double> ToDouble(const Matrix<T>& from) {
  Matrix<double> to(from.rows(), from.columns());
  for (int64_t i = 0; i < from.rows(); ++i) {
    for (int c = 0; c < from.columns(); ++c) {
      to.at(i, c) = static_cast<float>(from.at(i, c));
    }
  }
  return to;
}

inline std::vector<float> Normals(std::mt19937& random, int count, float mean,
                                  float deviation) {
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_MATRIX_H_
