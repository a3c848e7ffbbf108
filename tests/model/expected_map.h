#ifndef SFMAMBA_TESTS_MODEL_EXPECTED_MAP_H_
#define SFMAMBA_TESTS_MODEL_EXPECTED_MAP_H_

#include <cstdint>
#include <vector>

#include "ATen/core/Tensor.h"
#include "gtest/gtest.h"

namespace sfmamba::model {

// Properties of a map [N, C, H, W], computed by the reference in fp64.
struct ExpectedMap {
  std::vector<int64_t> shape;
  double sum, sum_of_absolutes, first, last;
};

inline void ExpectMap(const at::Tensor& map, const ExpectedMap& expected) {
  const at::Tensor values = map.contiguous().to(at::kDouble).view({-1});
  EXPECT_EQ(map.sizes().vec(), expected.shape);
  const double tolerance = 2e-6 * expected.sum_of_absolutes;
  EXPECT_NEAR(values.sum().item<double>(), expected.sum, tolerance);
  EXPECT_NEAR(values.abs().sum().item<double>(), expected.sum_of_absolutes,
              tolerance);
  EXPECT_NEAR(values[0].item<double>(), expected.first, 1e-4);
  EXPECT_NEAR(values[-1].item<double>(), expected.last, 1e-4);
}

}  // namespace sfmamba::model

#endif  // SFMAMBA_TESTS_MODEL_EXPECTED_MAP_H_
