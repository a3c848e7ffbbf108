#ifndef SFMAMBA_TESTS_KERNELS_PYTHON_CAUSAL_CONV1D_PROBLEM_H_
#define SFMAMBA_TESTS_KERNELS_PYTHON_CAUSAL_CONV1D_PROBLEM_H_

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/python/causal_conv1d.h"

namespace sfmamba::kernels {

struct CausalConvShape {
  int channels, taps;
  int64_t tokens, period;
};

template <typename T>
struct CausalConvProblem {
  using Real = Arithmetic<T>;

  explicit CausalConvProblem(const CausalConvShape& shape, int seed = 1)
      : shape(shape) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto fill = [&](auto* values, int64_t count) {
      values->resize(count);
      for (auto& value : *values) {
        value = static_cast<std::decay_t<decltype(value)>>(
            static_cast<float>(BFloat16(normal(random))));
      }
    };
    fill(&x, shape.channels * shape.tokens);
    fill(&dout, shape.channels * shape.tokens);
    fill(&initial, int64_t{shape.channels} * (shape.taps - 1));
    fill(&weight, int64_t{shape.channels} * shape.taps);
    fill(&bias, shape.channels);
    for (int64_t i = 0; i < shape.tokens; ++i) {
      run.push_back(i > shape.tokens - 3 ? -1 : static_cast<int32_t>(i / 19));
    }
  }

  CausalConv1dArgs<T> Args() const {
    CausalConv1dArgs<T> args{};
    args.channels = shape.channels;
    args.taps = shape.taps;
    args.tokens = shape.tokens;
    args.period = shape.period;
    args.x = {x.data(), shape.tokens, 1};
    args.weight = weight.data();
    if (bare) return args;
    args.silu = true;
    args.initial = {initial.data(), shape.taps - 1, 1};
    args.run = run.data();
    args.bias = bias.data();
    return args;
  }

  std::vector<double> Forward(CpuIsa isa) const {
    std::vector<T> out(x.size());
    CausalConv1d(Args(), {out.data(), shape.tokens, 1}, isa);
    return Doubles(out);
  }

  // Returns the gradients of x, initial, weight and bias.
  std::vector<std::vector<double>> Gradient(CpuIsa isa) const {
    std::vector<T> dx(x.size()), dinitial(initial.size());
    std::vector<Real> dweight(weight.size()), dbias(bias.size());
    CausalConv1dGradient(Args(),
                         {{dout.data(), shape.tokens, 1},
                          {dx.data(), shape.tokens, 1},
                          {dinitial.data(), shape.taps - 1, 1},
                          dweight.data(),
                          dbias.data()},
                         isa);
    return {Doubles(dx), Doubles(dinitial), Doubles(dweight), Doubles(dbias)};
  }

  double Loss() const {
    const std::vector<double> out = Forward(CpuIsa::kScalar);
    double sum = 0;
    for (size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
    return sum;
  }

  template <typename U>
  static std::vector<double> Doubles(const std::vector<U>& values) {
    std::vector<double> doubles;
    for (const U& value : values) {
      doubles.push_back(static_cast<Arithmetic<U>>(value));
    }
    return doubles;
  }

  CausalConvShape shape;
  // If true, there are no SiLU, initial tokens, runs or bias.
  bool bare = false;
  std::vector<T> x, dout, initial;
  std::vector<Real> weight, bias;
  std::vector<int32_t> run;
};

// Computes the definition independently of the kernels.
inline std::vector<double> ConvDefinition(const CausalConvProblem<double>& p) {
  const CausalConvShape& s = p.shape;
  std::vector<double> out(p.x.size());
  for (int d = 0; d < s.channels; ++d) {
    for (int64_t i = 0; i < s.tokens; ++i) {
      double v = p.bias[d];
      for (int j = 0; j < s.taps; ++j) {
        const int64_t from = i - j;
        const int64_t later = from + 1;
        if (j > 0 && later > 0 &&
            (later % s.period == 0 || p.run[later] != p.run[later - 1])) {
          break;
        }
        v += p.weight[d * s.taps + s.taps - 1 - j] *
             (from >= 0 ? p.x[d * s.tokens + from]
                        : p.initial[d * (s.taps - 1) + s.taps - 1 + from]);
      }
      out[d * s.tokens + i] = p.run[i] < 0 ? 0 : v / (1 + std::exp(-v));
    }
  }
  return out;
}

}  // namespace sfmamba::kernels

#endif  // SFMAMBA_TESTS_KERNELS_PYTHON_CAUSAL_CONV1D_PROBLEM_H_
