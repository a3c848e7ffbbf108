#include "kernels/python/causal_conv1d.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/python/causal_conv1d_problem.h"
#include "tests/kernels/python/gradients.h"

namespace sfmamba::kernels {
namespace {

const CausalConvShape kShapes[] = {{1, 1, 3, 1},
                                   {5, 4, 3, 50},
                                   {16, 3, 33, 7},
                                   {33, 4, 65, 40},
                                   {20, 8, 96, 96}};

TEST(CausalConv1dTest, DoublesAgreeWithTheDefinition) {
  for (const CausalConvShape& shape : kShapes) {
    const CausalConvProblem<double> problem(shape);
    ExpectNear(problem.Forward(CpuIsa::kScalar), ConvDefinition(problem),
               1e-12);
  }
}

TEST(CausalConv1dTest, GradientsOfDoublesAreFiniteDifferences) {
  for (const CausalConvShape& shape :
       {CausalConvShape{2, 4, 2, 9}, CausalConvShape{3, 3, 35, 9}}) {
    CausalConvProblem<double> problem(shape);
    ExpectFiniteDifferences(&problem, {&problem.x, &problem.initial,
                                       &problem.weight, &problem.bias});
  }
}

template <typename T>
void ExpectAgreementWithDoubles(double tolerance) {
  for (const CausalConvShape& shape : kShapes) {
    ExpectAgreement<CausalConvProblem<double>, CausalConvProblem<T>>(shape,
                                                                     tolerance);
  }
}

TEST(CausalConv1dTest, FloatsAgreeWithDoubles) {
  ExpectAgreementWithDoubles<float>(5e-6);
}

TEST(CausalConv1dTest, Bf16AgreesWithDoubles) {
  ExpectAgreementWithDoubles<BFloat16>(1.0 / 128);
}

}  // namespace
}  // namespace sfmamba::kernels
