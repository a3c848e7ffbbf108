#include "kernels/python/channel_scan_cuda.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/cuda/device_matrix.h"
#include "tests/kernels/cuda/device_memory.h"
#include "tests/kernels/python/channel_scan_problem.h"
#include "tests/kernels/python/device_batch.h"
#include "tests/kernels/python/gradients.h"

namespace sfmamba::kernels {
namespace {

template <typename T>
using Parts = std::vector<std::vector<T>>;

// One scan for each image and group. All scans of a group have the same A, D
// and bias.
template <typename T>
class BatchProblem {
 public:
  using Real = Arithmetic<T>;
  using Scan = ChannelScanProblem<T>;

  BatchProblem(const ChannelScanShape& shape, int images, int groups,
               bool bare = false)
      : shape(shape), images(images), groups(groups) {
    for (int k = 0; k < images * groups; ++k) {
      scans.emplace_back(shape, k + 1);
      scans[k].bare = bare;
      if (bare) {  // Steps may be negative. A small A keeps the states small.
        for (Real& a : scans[k].A) a /= 4;
      }
      scans[k].A = scans[k % groups].A;
      scans[k].D = scans[k % groups].D;
      scans[k].bias = scans[k % groups].bias;
    }
  }

  // Returns the array `member` of each scan.
  template <typename U>
  Parts<U> All(std::vector<U> Scan::*member) const {
    Parts<U> parts;
    for (const Scan& scan : scans) parts.push_back(scan.*member);
    return parts;
  }

  ChannelScanShape shape;
  int images, groups;
  std::vector<Scan> scans;
};

template <typename U>
std::vector<U> Joined(const Parts<U>& parts, size_t count) {
  std::vector<U> values;
  for (size_t k = 0; k < count; ++k) {
    values.insert(values.end(), parts[k].begin(), parts[k].end());
  }
  return values;
}

// The problem's inputs on the device.
template <typename T>
class DeviceScan {
 public:
  using Real = Arithmetic<T>;
  using Scan = ChannelScanProblem<T>;

  DeviceScan(const BatchProblem<T>& problem, Layout layout)
      : problem_(problem),
        layout_(layout),
        u_(Batch(problem.All(&Scan::u))),
        delta_(Batch(problem.All(&Scan::delta))),
        z_(Batch(problem.All(&Scan::z))),
        B_(Batch(problem.All(&Scan::B))),
        C_(Batch(problem.All(&Scan::C))),
        dout_(Batch(problem.All(&Scan::dout))),
        A_(Joined(problem.All(&Scan::A), problem.groups)),
        D_(Joined(problem.All(&Scan::D), problem.groups)),
        bias_(Joined(problem.All(&Scan::bias), problem.groups)),
        dlast_(Joined(problem.All(&Scan::dlast), problem.scans.size())) {}

  BatchScanArgs<T> Args() const {
    BatchScanArgs<T> args{};
    args.images = problem_.images;
    args.groups = problem_.groups;
    args.channels = problem_.shape.channels;
    args.states = problem_.shape.states;
    args.tokens = problem_.shape.tokens;
    args.period = problem_.shape.period;
    args.u = u_.template View<const T>();
    args.delta = delta_.template View<const T>();
    args.B = B_.template View<const T>();
    args.C = C_.template View<const T>();
    args.A = A_.data();
    if (problem_.scans[0].bare) return args;
    args.softplus = true;
    args.z = z_.template View<const T>();
    args.D = D_.data();
    args.bias = bias_.data();
    return args;
  }

  // Returns a vector for each scan: its outputs, followed by its last states.
  Parts<double> Forward() const {
    const DeviceBatch<T> out = Batch(problem_.All(&Scan::u));
    const DeviceArray<Real> last(dlast_.size());
    EXPECT_EQ(BatchScanCuda(Args(), {out.template View<T>(), last.data()},
                            TestStream()),
              "");
    EXPECT_TRUE(last.GuardsIntact());
    Parts<double> results(problem_.scans.size());
    AppendParts(out.ToHost(), &results);
    AppendSlices(last.ToHost(), &results);
    return results;
  }

  // Returns the same gradients as ChannelScanProblem::Gradient(), in the same
  // order. Each gradient has a vector for each scan.
  std::vector<Parts<double>> Gradient() const {
    const BatchScanArgs<T> args = Args();
    const size_t count = problem_.scans.size(), rows = D_.size();
    const size_t ranges = BatchScanRanges(args);
    const Parts<T> zeros(count, std::vector<T>(problem_.scans[0].u.size()));
    const DeviceBatch<T> du = Batch(zeros), ddelta = Batch(zeros),
                         dz = Batch(zeros);
    const DeviceArray<Real> dA(problem_.images * A_.size()),
        dD(problem_.images * rows), dbias(problem_.images * rows),
        dB(count * ranges * problem_.scans[0].B.size()), dC(dB.size()),
        saved(BatchScanSaved(args));
    BatchScanBackward<T> to;
    to.out = dout_.template View<const T>();
    to.last_state = dlast_.data();
    to.u = du.template View<T>();
    to.delta = ddelta.template View<T>();
    to.z = dz.template View<T>();
    to.A = dA.data();
    to.D = dD.data();
    to.bias = dbias.data();
    to.B = dB.data();
    to.C = dC.data();
    to.saved = saved.data();
    EXPECT_EQ(BatchScanGradientCuda(args, to, TestStream()), "");
    for (const DeviceArray<Real>* array : {&dA, &dD, &dbias, &dB, &dC, &saved})
      EXPECT_TRUE(array->GuardsIntact());
    std::vector<Parts<double>> results(8, Parts<double>(count));
    AppendParts(du.ToHost(), &results[0]);
    AppendParts(ddelta.ToHost(), &results[1]);
    AppendParts(dz.ToHost(), &results[2]);
    AppendSlices(dA.ToHost(), &results[3]);
    AppendSlices(dD.ToHost(), &results[4]);
    AppendSlices(dbias.ToHost(), &results[5]);
    AppendSlices(OverRanges(dB.ToHost(), ranges), &results[6]);
    AppendSlices(OverRanges(dC.ToHost(), ranges), &results[7]);
    return results;
  }

 private:
  template <typename U>
  DeviceBatch<U> Batch(const Parts<U>& parts) const {
    return {parts, problem_.groups, problem_.shape.tokens, layout_};
  }

  static void AppendParts(const Parts<T>& parts, Parts<double>* to) {
    for (size_t k = 0; k < parts.size(); ++k) {
      Scan::Append(parts[k], &(*to)[k]);
    }
  }

  // Cuts `values` into equal parts and appends one to each part of `to`.
  static void AppendSlices(const std::vector<Real>& values, Parts<double>* to) {
    const size_t each = values.size() / to->size();
    for (size_t i = 0; i < values.size(); ++i) {
      (*to)[i / each].push_back(values[i]);
    }
  }

  // Returns the sums of `values` [scans, ranges, values] over the ranges.
  std::vector<Real> OverRanges(const std::vector<Real>& values,
                               size_t ranges) const {
    const size_t each = problem_.scans[0].B.size();
    std::vector<Real> sums(values.size() / ranges);
    for (size_t i = 0; i < values.size(); ++i) {
      sums[i / each / ranges * each + i % each] += values[i];
    }
    return sums;
  }

  const BatchProblem<T>& problem_;
  const Layout layout_;
  const DeviceBatch<T> u_, delta_, z_, B_, C_, dout_;
  const DeviceArray<Real> A_, D_, bias_, dlast_;
};

// Expects the results that the scalar loop computes in double from the same
// inputs.
template <typename T>
void ExpectScalarLoops(const ChannelScanShape& shape, Layout layout,
                       double tolerance, bool bare = false) {
  SCOPED_TRACE(testing::Message()
               << shape.channels << " channels, " << shape.states << " states, "
               << shape.tokens << " tokens");
  const BatchProblem<T> problem(shape, 2, 2, bare);
  BatchProblem<double> exact(shape, 2, 2, bare);
  const DeviceScan<T> scan(problem, layout);
  const Parts<double> forward = scan.Forward();
  const std::vector<Parts<double>> gradients = scan.Gradient();
  for (size_t k = 0; k < exact.scans.size(); ++k) {
    SCOPED_TRACE(testing::Message() << "scan " << k);
    ExpectNear(forward[k], exact.scans[k].Forward(CpuIsa::kScalar), tolerance);
    const auto expected = exact.scans[k].Gradient(CpuIsa::kScalar);
    for (size_t g = 0; g < gradients.size(); ++g) {
      SCOPED_TRACE(testing::Message() << "gradient " << g);
      ExpectNear(gradients[g][k], expected[g], tolerance);
    }
  }
}

// {channels, states, tokens, period}. Some sizes are odd or end with a partial
// tile. With some sizes, a block has one channel, with others several.
const ChannelScanShape kScans[] = {{1, 1, 1, kWhole},   {5, 3, 7, 2},
                                   {17, 8, 33, kWhole}, {9, 16, 40, 16},
                                   {6, 32, 35, 17},     {61, 1, 18, kWhole},
                                   {3, 4, 32, 1}};

class ChannelScanCudaTest : public DeviceTest {};

TEST_F(ChannelScanCudaTest, DoublesAgreeWithTheScalarLoop) {
  for (const ChannelScanShape& shape : kScans) {
    ExpectScalarLoops<double>(shape, Layout::kRows, 1e-12);
  }
}

TEST_F(ChannelScanCudaTest, FloatsAgreeWithTheScalarLoop) {
  for (const ChannelScanShape& shape : kScans) {
    ExpectScalarLoops<float>(shape, Layout::kTokens, 2e-5);
  }
}

TEST_F(ChannelScanCudaTest, Bf16AgreesWithTheScalarLoop) {
  ExpectScalarLoops<BFloat16>({17, 8, 33, 20}, Layout::kRows, 1.0 / 128);
}

TEST_F(ChannelScanCudaTest, WhatIsOptionalMayBeMissing) {
  ExpectScalarLoops<double>({5, 6, 20, 7}, Layout::kRows, 1e-12, true);
}

// Returns true if two results have the same bits.
bool Equal(double a, double b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

TEST_F(ChannelScanCudaTest, TwoRunsGiveTheSameBits) {
  const BatchProblem<float> problem({19, 8, 20, kWhole}, 1, 1);
  const DeviceScan<float> scan(problem, Layout::kRows);
  const auto first = scan.Gradient(), second = scan.Gradient();
  for (size_t g = 0; g < first.size(); ++g) {
    for (size_t i = 0; i < first[g][0].size(); ++i) {
      ASSERT_TRUE(Equal(first[g][0][i], second[g][0][i])) << g << " " << i;
    }
  }
}

// Puts a bad value into token 25 of channel 3 of the second image. It may only
// affect this token's period, which is the tokens 20 to 39.
class ChannelScanIsolationCudaTest : public DeviceTest {
 protected:
  static constexpr int kTokens = 60, kChannel = 3;

  ChannelScanIsolationCudaTest() : clean_({5, 3, kTokens, 20}, 2, 1) {}

  static bool InPeriod(int64_t token) { return token >= 20 && token < 40; }

  void ExpectIsolated(std::vector<float> ChannelScanProblem<float>::*member,
                      float bad) {
    BatchProblem<float> problem = clean_;
    (problem.scans[1].*member)[kChannel * kTokens + 25] = bad;
    const DeviceScan<float> scan(problem, Layout::kRows);
    const DeviceScan<float> clean(clean_, Layout::kRows);
    const auto gradients = scan.Gradient(), expected = clean.Gradient();
    ExpectSameElsewhere(scan.Forward(), clean.Forward());
    for (int g = 0; g < 3; ++g) ExpectSameElsewhere(gradients[g], expected[g]);
    // The gradients of B and C are sums over all channels.
    for (int g = 6; g < 8; ++g) {
      for (size_t i = 0; i < gradients[g][0].size(); ++i) {
        EXPECT_TRUE(std::isfinite(gradients[g][0][i]));
        if (InPeriod(i % kTokens)) continue;
        EXPECT_TRUE(std::isfinite(gradients[g][1][i])) << i;
      }
    }
  }

  // Expects the same bits everywhere except in the channel's period.
  static void ExpectSameElsewhere(const Parts<double>& got,
                                  const Parts<double>& expected) {
    for (int k = 0; k < 2; ++k) {
      for (int i = 0; i < 5 * kTokens; ++i) {
        const bool hit =
            k == 1 && i / kTokens == kChannel && InPeriod(i % kTokens);
        if (hit) continue;
        ASSERT_TRUE(Equal(got[k][i], expected[k][i])) << k << " " << i;
      }
    }
  }

  BatchProblem<float> clean_;
};

TEST_F(ChannelScanIsolationCudaTest, ABadValueStaysInItsPeriodAndChannel) {
  using Scan = ChannelScanProblem<float>;
  for (const auto member : {&Scan::u, &Scan::delta, &Scan::z, &Scan::dout}) {
    ExpectIsolated(member, std::numeric_limits<float>::quiet_NaN());
    ExpectIsolated(member, std::numeric_limits<float>::infinity());
  }
}

TEST_F(ChannelScanCudaTest, WithoutTokensTheStatesAreZero) {
  const BatchProblem<float> problem({3, 2, 0, kWhole}, 2, 1);
  const DeviceScan<float> scan(problem, Layout::kRows);
  for (const std::vector<double>& last : scan.Forward()) {
    EXPECT_EQ(last, std::vector<double>(6));
  }
  const auto gradients = scan.Gradient();
  EXPECT_EQ(gradients[3][0], std::vector<double>(6));
  EXPECT_EQ(gradients[5][1], std::vector<double>(3));
}

TEST_F(ChannelScanCudaTest, WithoutImagesThereIsNothingToDo) {
  BatchScanArgs<float> args{};
  args.groups = args.channels = args.states = 1;
  args.tokens = args.period = 1;
  EXPECT_EQ(BatchScanCuda(args, {}, TestStream()), "");
  EXPECT_EQ(BatchScanGradientCuda(args, {}, TestStream()), "");
}

}  // namespace
}  // namespace sfmamba::kernels
