#include "kernels/python/channel_scan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/python/gradients.h"

namespace sfmamba::kernels {
namespace {

constexpr int64_t kWhole = std::numeric_limits<int64_t>::max();

struct Shape {
  int channels, states;
  int64_t tokens, period;
};

// Inputs and the results of one form of the scan. The tensors are row-major.
template <typename T>
struct Problem {
  using Real = Arithmetic<T>;

  explicit Problem(const Shape& shape) : shape(shape) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto fill = [&](auto* values, int64_t count, float mean) {
      values->resize(count);
      for (auto& value : *values) {
        value = static_cast<std::decay_t<decltype(value)>>(
            // Exact in bf16, so that each T has the same inputs.
            static_cast<float>(BFloat16(normal(random) + mean)));
      }
    };
    const int64_t rows = shape.channels * shape.tokens;
    const int64_t shared = shape.states * shape.tokens;
    fill(&u, rows, 0);
    fill(&delta, rows, -1);
    fill(&z, rows, 0);
    fill(&dout, rows, 0);
    fill(&B, shared, 0);
    fill(&C, shared, 0);
    fill(&A, int64_t{shape.channels} * shape.states, 0);
    for (Real& a : A) a = -std::abs(a);
    fill(&D, shape.channels, 0);
    fill(&bias, shape.channels, 0);
    fill(&dlast, int64_t{shape.channels} * shape.states, 0);
  }

  ChannelScanArgs<T> Args() {
    ChannelScanArgs<T> args{};
    args.channels = shape.channels;
    args.states = shape.states;
    args.tokens = shape.tokens;
    args.period = shape.period;
    args.softplus = true;
    args.u = {u.data(), shape.tokens, 1};
    args.delta = {delta.data(), shape.tokens, 1};
    args.z = {z.data(), shape.tokens, 1};
    args.B = {B.data(), shape.tokens, 1};
    args.C = {C.data(), shape.tokens, 1};
    args.A = A.data();
    args.D = D.data();
    args.bias = bias.data();
    scratch.resize(BackwardScratch(args));
    args.scratch = scratch.data();
    return args;
  }

  // Returns the outputs, then the last states.
  std::vector<double> Forward(CpuIsa isa) {
    std::vector<T> out(u.size());
    std::vector<Real> last(A.size());
    ChannelScan(Args(), {{out.data(), shape.tokens, 1}, last.data()}, isa);
    std::vector<double> results;
    Append(out, &results);
    Append(last, &results);
    return results;
  }

  // Returns the gradients of u, delta, z, A, D, bias, B and C.
  std::vector<std::vector<double>> Gradient(CpuIsa isa) {
    std::vector<T> du(u.size()), ddelta(u.size()), dz(u.size());
    std::vector<Real> dA(A.size()), dD(D.size()), dbias(D.size()), dB(B.size()),
        dC(B.size());
    ChannelScanBackward<T> to{};
    to.out = {dout.data(), shape.tokens, 1};
    to.last_state = dlast.data();
    to.u = {du.data(), shape.tokens, 1};
    to.delta = {ddelta.data(), shape.tokens, 1};
    to.z = {dz.data(), shape.tokens, 1};
    to.A = dA.data();
    to.D = dD.data();
    to.bias = dbias.data();
    to.B = dB.data();
    to.C = dC.data();
    ChannelScanGradient(Args(), to, isa);
    std::vector<std::vector<double>> results(8);
    Append(du, &results[0]);
    Append(ddelta, &results[1]);
    Append(dz, &results[2]);
    Append(dA, &results[3]);
    Append(dD, &results[4]);
    Append(dbias, &results[5]);
    Append(dB, &results[6]);
    Append(dC, &results[7]);
    return results;
  }

  // Returns the sum of all results, weighted by dout and dlast.
  double Loss() {
    const std::vector<double> results = Forward(CpuIsa::kScalar);
    double sum = 0;
    for (size_t i = 0; i < dout.size(); ++i) {
      sum += results[i] * static_cast<Real>(dout[i]);
    }
    for (size_t i = 0; i < dlast.size(); ++i) {
      sum += results[dout.size() + i] * dlast[i];
    }
    return sum;
  }

  template <typename U>
  static void Append(const std::vector<U>& values, std::vector<double>* to) {
    for (const U& value : values) {
      to->push_back(static_cast<Arithmetic<U>>(value));
    }
  }

  Shape shape;
  std::vector<T> u, delta, z, dout, B, C;
  std::vector<Real> A, D, bias, dlast, scratch;
};

// The definition, computed apart from the kernels; the outputs alone.
std::vector<double> Definition(const Problem<double>& p) {
  const Shape& s = p.shape;
  std::vector<double> out(p.u.size());
  for (int d = 0; d < s.channels; ++d) {
    std::vector<double> h(s.states);
    for (int64_t i = 0; i < s.tokens; ++i) {
      if (i % s.period == 0) std::fill(h.begin(), h.end(), 0);
      const int64_t at = d * s.tokens + i;
      const double step = std::log1p(std::exp(p.delta[at] + p.bias[d]));
      double y = p.D[d] * p.u[at];
      for (int n = 0; n < s.states; ++n) {
        h[n] = std::exp(step * p.A[d * s.states + n]) * h[n] +
               step * p.B[n * s.tokens + i] * p.u[at];
        y += p.C[n * s.tokens + i] * h[n];
      }
      out[at] = y * p.z[at] / (1 + std::exp(-p.z[at]));
    }
  }
  return out;
}

const Shape kShapes[] = {{1, 1, 1, kWhole},   {5, 3, 7, 2},
                         {16, 8, 33, kWhole}, {17, 16, 64, 32},
                         {64, 9, 65, 31},     {32, 4, 97, kWhole}};

TEST(ChannelScanTest, DoublesAgreeWithTheDefinition) {
  for (const Shape& shape : kShapes) {
    Problem<double> problem(shape);
    const std::vector<double> expected = Definition(problem);
    std::vector<double> got = problem.Forward(CpuIsa::kScalar);
    got.resize(expected.size());  // The last states come after the outputs.
    ExpectNear(got, expected, 1e-12);
  }
}

TEST(ChannelScanTest, GradientsOfDoublesAreFiniteDifferences) {
  for (const Shape& shape : {Shape{2, 3, 5, 3}, Shape{3, 5, 35, kWhole}}) {
    Problem<double> problem(shape);
    ExpectFiniteDifferences(
        &problem, {&problem.u, &problem.delta, &problem.z, &problem.A,
                   &problem.D, &problem.bias, &problem.B, &problem.C});
  }
}

template <typename T>
void ExpectAgreementWithDoubles(double tolerance) {
  for (const Shape& shape : kShapes) {
    ExpectAgreement<Problem<double>, Problem<T>>(shape, tolerance);
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
