#include "model/backbones/auxiliary_tokens.h"

#include "ATen/ops/allclose.h"
#include "ATen/ops/arange.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/full.h"
#include "gtest/gtest.h"
#include "model/weights/state_dict.h"
#include "tests/model/against_reference.h"
#include "tests/model/implementations.h"

namespace sfmamba::backbones {
namespace {

constexpr int kWidth = 4;

at::Tensor Sequences() {  // Three sequences of five tokens.
  return at::arange(3 * 5 * kWidth, at::kFloat).view({3, 5, kWidth});
}

// Makes auxiliary tokens. The learnable tokens are 7 (head) and 9 (tail).
AuxiliaryTokens Make(model::Tokens tokens, bool swap, bool cpu) {
  model::BackboneConfig config;
  config.tokens = tokens;
  config.swap = swap;
  weights::StateDict weights([](const std::string& key, at::IntArrayRef shape) {
    return at::full(shape, key == "aux_head" ? 7.0 : 9.0);
  });
  return AuxiliaryTokens(weights.root(), kWidth, config,
                         model::CpuOrReference(cpu));
}

class TokenSwapTest : public testing::TestWithParam<bool> {};

TEST_P(TokenSwapTest, DataTokensAreEachSequencesMean) {
  const at::Tensor x = Sequences();
  const at::Tensor y = Make(model::Tokens::kData, true, GetParam()).Attach(x);
  ASSERT_EQ(y.sizes(), at::IntArrayRef({3, 7, kWidth}));
  EXPECT_TRUE(at::allclose(y.select(1, 0), x.mean(1)));
  EXPECT_TRUE(at::allclose(y.select(1, 6), x.mean(1)));
  EXPECT_TRUE(at::equal(AuxiliaryTokens::Detach(y), x));
}

TEST_P(TokenSwapTest, LearnableTokensAreTheParameters) {
  const at::Tensor y =
      Make(model::Tokens::kLearnable, true, GetParam()).Attach(Sequences());
  EXPECT_TRUE(at::equal(y.select(1, 0), at::full({3, kWidth}, 7.0)));
  EXPECT_TRUE(at::equal(y.select(1, 6), at::full({3, kWidth}, 9.0)));
  EXPECT_TRUE(at::equal(AuxiliaryTokens::Detach(y), Sequences()));
}

TEST_P(TokenSwapTest, WhatAPartitionLeavesUnsetIsFilled) {
  const AuxiliaryTokens swap =
      Make(model::Tokens::kLearnable, true, GetParam());
  at::Tensor x = at::full({3, 7, kWidth}, -1.0);
  x.narrow(1, 1, 5).copy_(Sequences());
  EXPECT_EQ(swap.ends(), ops::WindowEnds::kUnset);
  swap.FillUnset(x);
  EXPECT_TRUE(at::equal(x, swap.Attach(Sequences())));
}

TEST_P(TokenSwapTest, MeansAreLeftToThePartition) {
  const AuxiliaryTokens swap = Make(model::Tokens::kData, true, GetParam());
  EXPECT_EQ(swap.ends(), ops::WindowEnds::kMean);
  at::Tensor x = at::full({3, 7, kWidth}, -1.0);
  const at::Tensor before = x.clone();
  swap.FillUnset(x);
  EXPECT_TRUE(at::equal(x, before));
}

TEST_P(TokenSwapTest, WithoutTokensNothingChanges) {
  const AuxiliaryTokens swap = Make(model::Tokens::kNone, true, GetParam());
  EXPECT_TRUE(at::equal(swap.Attach(Sequences()), Sequences()));
  EXPECT_FALSE(swap.attaches());
  EXPECT_FALSE(swap.swaps());
}

TEST_P(TokenSwapTest, TokensMayStayWhereTheyAre) {
  EXPECT_TRUE(Make(model::Tokens::kData, true, GetParam()).swaps());
  const AuxiliaryTokens still = Make(model::Tokens::kData, false, GetParam());
  EXPECT_TRUE(still.attaches());
  EXPECT_FALSE(still.swaps());
}

INSTANTIATE_TEST_SUITE_P(Forms, TokenSwapTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Cpu" : "Reference";
                         });

class AuxiliaryTokensTest : public model::AgainstReference {};

INSTANTIATE_TEST_SUITE_P(All, AuxiliaryTokensTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

TEST_P(AuxiliaryTokensTest, SurroundSequencesOfOddSizes) {
  constexpr int kOddWidth = 19;
  for (const model::Tokens kind :
       {model::Tokens::kData, model::Tokens::kLearnable}) {
    model::BackboneConfig config;
    config.tokens = kind;
    const auto tokens = Both([&](const auto& scope, const auto& ops) {
      return AuxiliaryTokens(scope, kOddWidth, config, ops);
    });
    for (const int64_t sequences : {1, 3}) {
      for (const int64_t length : {1, 7}) {
        const at::Tensor x =
            model::RandomValues("x", {sequences, length, kOddWidth});
        ExpectNear(tokens.tested.Attach(Stream(x).Sum()),
                   tokens.reference.Attach(x));
      }
    }
  }
}

}  // namespace
}  // namespace sfmamba::backbones
