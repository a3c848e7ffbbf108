#ifndef SFMAMBA_TESTS_KERNELS_PYTHON_DEVICE_BATCH_H_
#define SFMAMBA_TESTS_KERNELS_PYTHON_DEVICE_BATCH_H_

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/python/strided.h"
#include "tests/kernels/cuda/device_memory.h"

namespace sfmamba::kernels {

// The memory layout of a tensor [images, groups, rows, tokens]. kRows stores it
// in this order, and kTokens as [images, tokens, groups, rows].
enum class Layout { kRows, kTokens };

// A tensor on the device in one of these layouts. On the host, it has a part
// [rows, tokens] for each image and group, image by image.
template <typename T>
class DeviceBatch {
 public:
  DeviceBatch(const std::vector<std::vector<T>>& parts, int groups,
              int64_t tokens, Layout layout)
      : parts_(static_cast<int>(parts.size())),
        groups_(groups),
        rows_(tokens == 0 ? 0 : parts[0].size() / tokens),
        tokens_(tokens),
        layout_(layout),
        values_(parts_ * rows_ * tokens_) {
    std::vector<T> values(values_.size());
    for (int k = 0; k < parts_; ++k) {
      for (int64_t i = 0; i < rows_ * tokens_; ++i) {
        values[At(k, i)] = parts[k][i];
      }
    }
    CopyToDevice(values_.data(), values.data(), values.size() * sizeof(T));
  }

  template <typename U>
  StridedBatch<U> View() const {
    if (layout_ == Layout::kRows) {
      return {values_.data(), groups_ * rows_ * tokens_, rows_ * tokens_,
              tokens_, 1};
    }
    return {values_.data(), groups_ * rows_ * tokens_, rows_, 1,
            groups_ * rows_};
  }

  // Returns the parts as they are on the device.
  std::vector<std::vector<T>> ToHost() const {
    EXPECT_TRUE(values_.GuardsIntact());
    const std::vector<T> values = values_.ToHost();
    std::vector<std::vector<T>> parts(parts_, std::vector<T>(rows_ * tokens_));
    for (int k = 0; k < parts_; ++k) {
      for (int64_t i = 0; i < rows_ * tokens_; ++i) {
        parts[k][i] = values[At(k, i)];
      }
    }
    return parts;
  }

 private:
  // Returns where the layout stores value i of part k.
  int64_t At(int k, int64_t i) const {
    if (layout_ == Layout::kRows) return k * rows_ * tokens_ + i;
    const int64_t row = i / tokens_, token = i % tokens_;
    return ((k / groups_ * tokens_ + token) * groups_ + k % groups_) * rows_ +
           row;
  }

  const int parts_, groups_;
  const int64_t rows_, tokens_;
  const Layout layout_;
  const DeviceArray<T> values_;
};

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_PYTHON_DEVICE_BATCH_H_
