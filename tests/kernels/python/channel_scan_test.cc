#include "kernels/python/channel_scan.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/python/channel_scan_problem.h"
#include "tests/kernels/python/gradients.h"

namespace sfmamba::kernels {
namespace {

const ChannelScanShape kShapes[] = {{1, 1, 1, kWhole},   {5, 3, 7, 2},
                                    {16, 8, 33, kWhole}, {17, 16, 64, 32},
                                    {64, 9, 65, 31},     {32, 4, 97, kWhole}};

TEST(ChannelScanTest, DoublesAgreeWithTheDefinition) {
  for (const ChannelScanShape& shape : kShapes) {
    ChannelScanProblem<double> problem(shape);
    const std::vector<double> expected = ScanDefinition(problem);
    std::vector<double> got = problem.Forward(CpuIsa::kScalar);
    // Drops the last states, which follow the outputs.
    got.resize(expected.size());
    ExpectNear(got, expected, 1e-12);
  }
}

TEST(ChannelScanTest, GradientsOfDoublesAreFiniteDifferences) {
  for (const ChannelScanShape& shape :
       {ChannelScanShape{2, 3, 5, 3}, ChannelScanShape{3, 5, 35, kWhole}}) {
    ChannelScanProblem<double> problem(shape);
    ExpectFiniteDifferences(
        &problem, {&problem.u, &problem.delta, &problem.z, &problem.A,
                   &problem.D, &problem.bias, &problem.B, &problem.C});
  }
}

template <typename T>
void ExpectAgreementWithDoubles(double tolerance) {
  for (const ChannelScanShape& shape : kShapes) {
    ExpectAgreement<ChannelScanProblem<double>, ChannelScanProblem<T>>(
        shape, tolerance);
  }
}

TEST(ChannelScanTest, FloatsAgreeWithDoubles) {
  ExpectAgreementWithDoubles<float>(2e-5);
}

TEST(ChannelScanTest, Bf16AgreesWithDoubles) {
  ExpectAgreementWithDoubles<BFloat16>(1.0 / 128);
}

}  // namespace
}  // namespace sfmamba::kernels
