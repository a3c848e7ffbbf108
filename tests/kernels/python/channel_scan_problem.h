#ifndef SFMAMBA_TESTS_KERNELS_PYTHON_CHANNEL_SCAN_PROBLEM_H_
#define SFMAMBA_TESTS_KERNELS_PYTHON_CHANNEL_SCAN_PROBLEM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/python/channel_scan.h"

namespace sfmamba::kernels {

// A period that contains all tokens.
constexpr int64_t kWhole = std::numeric_limits<int64_t>::max();

struct ChannelScanShape {
  int channels, states;
  int64_t tokens, period;
};

// Random inputs of a scan with the sizes `shape`, and functions that compute
// its results. T is the type of the tokens' values. Tensors are row-major.
template <typename T>
struct ChannelScanProblem {
  using Real = Arithmetic<T>;

  explicit ChannelScanProblem(const ChannelScanShape& shape, int seed = 1)
      : shape(shape) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](auto* values, int64_t count, float mean) {
      values->resize(count);
      for (auto& value : *values) {
        value = static_cast<std::decay_t<decltype(value)>>(
            // The value is exact in bf16, so all types get the same inputs.
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
    args.softplus = !bare;
    args.u = {u.data(), shape.tokens, 1};
    args.delta = {delta.data(), shape.tokens, 1};
    args.B = {B.data(), shape.tokens, 1};
    args.C = {C.data(), shape.tokens, 1};
    args.A = A.data();
    if (!bare) {
      args.z = {z.data(), shape.tokens, 1};
      args.D = D.data();
      args.bias = bias.data();
    }
    scratch.resize(BackwardScratch(args));
    args.scratch = scratch.data();
    return args;
  }

  // Returns the outputs, followed by the last states.
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

  ChannelScanShape shape;
  bool bare = false;  // If true, there are no z, D, bias or softplus.
  std::vector<T> u, delta, z, dout, B, C;
  std::vector<Real> A, D, bias, dlast, scratch;
};

// Returns the outputs, without the last states. Computes them by the
// definition, independently of the kernels.
inline std::vector<double> ScanDefinition(const ChannelScanProblem<double>& p) {
  const ChannelScanShape& s = p.shape;
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

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_PYTHON_CHANNEL_SCAN_PROBLEM_H_
