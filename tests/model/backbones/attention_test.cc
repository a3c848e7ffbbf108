#include "model/backbones/attention.h"

#include "ATen/TensorOperators.h"
#include "tests/model/backbones/mixer_cases.h"

namespace sfmamba::backbones {
namespace {

constexpr int kWidth = 18, kHeads = 3;

class AttentionTest : public MixerTest {
 protected:
  static Compared<Attention> Make(bool scaled) {
    return Both([&](const auto& scope, const auto& ops) {
      return Attention(scope, kWidth, kHeads,
                       scaled ? scope.Take("gamma_1", {kWidth}) : at::Tensor(),
                       ops);
    });
  }
};

TEST_P(AttentionTest, MixesTheTokensOfEachSequence) {
  for (const bool scaled : {false, true}) {
    for (const MixerCase& c : MixerCases()) {
      ExpectEqualMixers(Make(scaled), kWidth, c);
    }
  }
}

TEST_P(AttentionTest, AsksForSomeTokensOnly) {
  const auto attention = Make(/*scaled=*/false);
  const at::Tensor x = model::RandomValues("x", {3, 7, kWidth});
  const at::Tensor sum = model::RandomValues("sum", {3, 7, kWidth});
  ops::Residual all(sum.clone());
  attention.reference.AddTo(all, x, /*length=*/7);
  for (const int64_t first : {0, 1, 3}) {
    const at::Tensor some = sum.narrow(1, first, 4).contiguous();
    ops::Residual a = Stream(some);
    attention.tested.AddToPart(a, Normed(x), first);
    ExpectNear(a.Sum(), all.Sum().narrow(1, first, 4));
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
