#include "kernels/python/causal_conv1d.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/python/gradients.h"

namespace sfmamba::kernels {
namespace {

struct Shape {
  int channels, taps;
  int64_t tokens, period;
};

template <typename T>
struct Problem {
  using Real = Arithmetic<T>;

  explicit Problem(const Shape& shape) : shape(shape) {
    std::mt19937 random(1);
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
    args.silu = true;
    args.x = {x.data(), shape.tokens, 1};
    args.initial = {initial.data(), shape.taps - 1, 1};
    args.run = run.data();
    args.weight = weight.data();
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

  Shape shape;
  std::vector<T> x, dout, initial;
  std::vector<Real> weight, bias;
  std::vector<int32_t> run;
};

// The definition, computed apart from the kernels.
std::vector<double> Definition(const Problem<double>& p) {
  const Shape& s = p.shape;
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

const Shape kShapes[] = {{1, 1, 3, 1},
                         {5, 4, 3, 50},
                         {16, 3, 33, 7},
                         {33, 4, 65, 40},
                         {20, 8, 96, 96}};

TEST(CausalConv1dTest, DoublesAgreeWithTheDefinition) {
  for (const Shape& shape : kShapes) {
    const Problem<double> problem(shape);
    ExpectNear(problem.Forward(CpuIsa::kScalar), Definition(problem), 1e-12);
  }
}

TEST(CausalConv1dTest, GradientsOfDoublesAreFiniteDifferences) {
  for (const Shape& shape : {Shape{2, 4, 2, 9}, Shape{3, 3, 35, 9}}) {
    Problem<double> problem(shape);
    ExpectFiniteDifferences(&problem, {&problem.x, &problem.initial,
                                       &problem.weight, &problem.bias});
  }
}

template <typename T>
void ExpectAgreementWithDoubles(double tolerance) {
  for (const Shape& shape : kShapes) {
    ExpectAgreement<Problem<double>, Problem<T>>(shape, tolerance);
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
