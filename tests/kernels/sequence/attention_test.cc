#include "kernels/sequence/attention.h"

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/matrix.h"

namespace sfmamba::kernels {
namespace {

// The inputs of an attention that computes its products in W.
template <typename W>
struct Problem {
  Problem(int64_t queries, int64_t tokens, int d, float deviation = 1)
      : q(queries, d), k(tokens, d), v(tokens, d) {
    std::mt19937 random(1);
    for (Matrix<W>* x : {&q, &k, &v}) {
      x->FillNormal(random, 0.1f, x == &v ? 1 : deviation);
    }
  }

  AttentionArgs<W> Args(Matrix<W>& y) const {
    AttentionArgs<W> args{};
    args.queries = q.rows();
    args.tokens = k.rows();
    args.d = q.columns();
    args.q = q.data();
    args.q_stride = q.stride();
    args.k = k.data();
    args.k_stride = k.stride();
    args.v = v.data();
    args.v_stride = v.stride();
    args.y = y.data();
    args.y_stride = y.stride();
    return args;
  }

  Matrix<W> Run(CpuIsa isa) const {
    Matrix<W> y(q.rows(), q.columns());
    AttentionCpu(Args(y), isa);
    EXPECT_TRUE(y.GuardsIntact());
    return y;
  }

  Matrix<double> Reference() const {
    const int d = q.columns();
    Matrix<double> y(q.rows(), d);
    std::vector<double> weights(k.rows());
    for (int64_t i = 0; i < q.rows(); ++i) {
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t j = 0; j < k.rows(); ++j) {
        double score = 0;
        for (int c = 0; c < d; ++c) {
          score += double{Value(q.at(i, c))} * Value(k.at(j, c));
        }
        weights[j] = score / std::sqrt(d);
        largest = std::max(largest, weights[j]);
      }
      for (double& weight : weights) {
        weight = std::exp(weight - largest);
        sum += weight;
      }
      for (int64_t j = 0; j < k.rows(); ++j) {
        for (int c = 0; c < d; ++c) {
          y.at(i, c) += weights[j] / sum * Value(v.at(j, c));
        }
      }
    }
    return y;
  }

  static float Value(W value) { return static_cast<float>(value); }

  Matrix<W> q, k, v;
};

class AttentionTest : public testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isa, AttentionTest,
                         testing::ValuesIn(SupportedCpuIsas()), IsaName);

constexpr std::array<int, 3> kSizes[] = {
    {1, 1, 1},    {1, 5, 3},     {7, 16, 40},  {49, 49, 40},
    {65, 17, 33}, {3, 1100, 12}, {67, 198, 64}};

TEST_P(AttentionTest, AgreesWithFp64) {
  for (const auto& [queries, tokens, d] : kSizes) {
    const Problem<float> problem(queries, tokens, d);
    SCOPED_TRACE(testing::Message() << queries << " " << tokens << " " << d);
    ExpectClose(problem.Run(GetParam()), problem.Reference(), 2e-6);
  }
}

// The inputs are bf16. The kernel also rounds the softmax weights and its
// result y to bf16.
TEST_P(AttentionTest, AgreesWithFp64InBf16) {
  for (const auto& [queries, tokens, d] : kSizes) {
    const Problem<BFloat16> problem(queries, tokens, d);
    SCOPED_TRACE(testing::Message() << queries << " " << tokens << " " << d);
    ExpectClose(problem.Run(GetParam()), problem.Reference(), 4e-3);
  }
}

// The kernel processes the keys in blocks. The largest score is in the first,
// second or third block. No exponential of the softmax may overflow.
TEST_P(AttentionTest, LargeScoresOfAnyBlockCount) {
  for (const int64_t strong : {0, 600, 1299}) {
    Problem<float> problem(5, 1300, 8, /*deviation=*/3);
    for (int c = 0; c < 8; ++c) problem.k.at(strong, c) = 40;
    ExpectClose(problem.Run(GetParam()), problem.Reference(), 1e-5);
  }
}

template <typename W>
void ExpectSameBitsBesideAnyOthers(CpuIsa isa) {
  const Problem<W> problem(150, 600, 20);
  const Matrix<W> all = problem.Run(isa);
  for (const int64_t begin : {0, 1, 77, 149}) {
    for (const int64_t queries : {1, 9, 70}) {
      if (begin + queries > 150) continue;
      Matrix<W> y(queries, 20);
      AttentionArgs<W> args = problem.Args(y);
      args.q += begin * args.q_stride;
      args.queries = queries;
      AttentionCpu(args, isa);
      for (int64_t i = 0; i < queries; ++i) {
        ASSERT_TRUE(y.RowEquals(i, all, begin + i)) << begin << " " << i;
      }
    }
  }
}

TEST_P(AttentionTest, AQueryHasTheSameBitsBesideAnyOthers) {
  ExpectSameBitsBesideAnyOthers<float>(GetParam());
  ExpectSameBitsBesideAnyOthers<BFloat16>(GetParam());
}

template <typename W>
void ExpectPoisonStays(float poison, CpuIsa isa) {
  Problem<W> problem(10, 30, 5);
  const Matrix<W> clean = problem.Run(isa);
  problem.q.at(4, 1) = W(poison);
  const Matrix<W> y = problem.Run(isa);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(y.RowEquals(i, clean, i), i != 4);
  EXPECT_FALSE(y.RowIsFinite(4));
  problem.v.at(29, 0) = W(poison);
  const Matrix<W> all = problem.Run(isa);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(all.RowIsFinite(i));
}

TEST_P(AttentionTest, PoisonStaysWithItsQueryAndComesFromAnyKey) {
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity()}) {
    ExpectPoisonStays<float>(poison, GetParam());
    ExpectPoisonStays<BFloat16>(poison, GetParam());
  }
}

// Runs a larger problem of NaNs, which may leave NaNs in the thread's scratch
// memory. Then places the inputs of a problem among NaNs, as one head of many.
// Neither may change the result.
TEST_P(AttentionTest, PoisonAroundAProblemIsNotRead) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Problem<BFloat16> problem(40, 45, 20);
  const Matrix<BFloat16> clean = problem.Run(GetParam());
  Problem<BFloat16> larger(70, 100, 70);
  for (Matrix<BFloat16>* x : {&larger.q, &larger.k, &larger.v}) {
    for (int64_t i = 0; i < x->rows(); ++i) {
      for (int c = 0; c < 70; ++c) x->at(i, c) = BFloat16(kNan);
    }
  }
  larger.Run(GetParam());
  EXPECT_TRUE(problem.Run(GetParam()) == clean);
  Problem<BFloat16> beside = larger;
  for (const auto& [from, to] : {std::pair(&problem.q, &beside.q),
                                 {&problem.k, &beside.k},
                                 {&problem.v, &beside.v}}) {
    for (int64_t i = 0; i < from->rows(); ++i) {
      for (int c = 0; c < 20; ++c) to->at(i, c + 1) = from->at(i, c);
    }
  }
  Matrix<BFloat16> y(40, 20);
  AttentionArgs<BFloat16> args = beside.Args(y);
  args.queries = 40;
  args.tokens = 45;
  args.d = 20;
  ++args.q;
  ++args.k;
  ++args.v;
  AttentionCpu(args, GetParam());
  EXPECT_TRUE(y == clean);
}

}  // namespace
}  // namespace sfmamba::kernels
