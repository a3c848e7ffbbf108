#ifndef SFMAMBA_TESTS_KERNELS_PYTHON_GRADIENTS_H_
#define SFMAMBA_TESTS_KERNELS_PYTHON_GRADIENTS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/simd/cpu_features.h"

namespace sfmamba::kernels {

// Expects that the values differ by at most `tolerance` times the largest
// expected value.
inline void ExpectNear(const std::vector<double>& got,
                       const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  double largest = 1e-3;
  for (double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * largest) << i;
  }
}

// Expects problem->Gradient() to agree with finite differences of
// problem->Loss(). `inputs` are the problem's inputs, in the order of its
// gradients.
template <typename Problem>
void ExpectFiniteDifferences(Problem* problem,
                             const std::vector<std::vector<double>*>& inputs) {
  constexpr double kStep = 1e-5;
  const auto gradients = problem->Gradient(CpuIsa::kScalar);
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<double> expected;
    for (double& value : *inputs[k]) {
      const double before = value;
      value = before + kStep;
      const double above = problem->Loss();
      value = before - kStep;
      expected.push_back((above - problem->Loss()) / (2 * kStep));
      value = before;
    }
    SCOPED_TRACE(k);
    ExpectNear(gradients[k], expected, 1e-7);
  }
}

// Expects that each instruction set agrees with the result in double, forward
// and backward.
template <typename Exact, typename Problem, typename Shape>
void ExpectAgreement(const Shape& shape, double tolerance) {
  Exact exact(shape);
  const std::vector<double> forward = exact.Forward(CpuIsa::kScalar);
  const auto gradients = exact.Gradient(CpuIsa::kScalar);
  for (CpuIsa isa : SupportedCpuIsas()) {
    SCOPED_TRACE(testing::Message()
                 << CpuIsaName(isa) << ", " << shape.channels << " channels");
    Problem problem(shape);
    ExpectNear(problem.Forward(isa), forward, tolerance);
    const auto got = problem.Gradient(isa);
    for (size_t k = 0; k < got.size(); ++k) {
      SCOPED_TRACE(k);
      ExpectNear(got[k], gradients[k], tolerance);
    }
  }
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_PYTHON_GRADIENTS_H_
