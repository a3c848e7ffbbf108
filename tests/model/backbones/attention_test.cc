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

TEST_P(AttentionTest, AsksForTheFirstTokensOnly) {
  const auto attention = Make(/*scaled=*/false);
  const at::Tensor x = model::RandomValues("x", {3, 7, kWidth});
  const at::Tensor sum = model::RandomValues("sum", {3, 4, kWidth});
  ops::Residual a = Stream(sum), b(sum.clone());
  attention.tested.AddTo(a, Normed(x), /*length=*/7);
  attention.reference.AddTo(b, x, /*length=*/7);
  ExpectNear(a.Sum(), b.Sum());
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
