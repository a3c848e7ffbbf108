#include "model/backbones/ssm_branch.h"

#include "ATen/ops/arange.h"
#include "ATen/ops/empty_like.h"
#include "ATen/ops/equal.h"
#include "ATen/ops/tensor.h"
#include "tests/model/backbones/mixer_cases.h"

namespace sfmamba::backbones {
namespace {

constexpr int kChannels = 19;

TEST(ReversedTest, ReversesEachSequence) {
  const at::Tensor x = at::arange(6, at::kFloat).view({1, 6, 1});
  EXPECT_TRUE(at::equal(
      Reversed(x, 3),
      at::tensor({2., 1., 0., 5., 4., 3.}, at::kFloat).view({1, 6, 1})));
}

class SsmBranchTest : public model::AgainstReference {
 protected:
  // Calls run(branch, u, y) for the tested and for the reference branch. u and
  // y have the type of the implementation's maps. Expects equal values in y
  // after both calls.
  template <typename Branch, typename Run>
  static void ExpectEqual(const Compared<Branch>& branch, const MixerCase& c,
                          Run run) {
    const at::Tensor u =
        model::RandomValues("u", {c.rows, c.sequences * c.length, kChannels});
    const at::Tensor y = model::RandomValues("y", u.sizes());
    const at::Tensor own = u.to(GetParam().type);
    const at::Tensor a = y.clone().to(GetParam().type), b = y.clone();
    run(branch.tested, own, a);
    run(branch.reference, u, b);
    ExpectNear(a, b);
  }
};

TEST_P(SsmBranchTest, ScansBothDirections) {
  for (const int states : {8, 16}) {
    for (const int rank : {1, 3}) {
      for (const int reversed : {0, 7}) {
        const auto branch = Both([&](const auto& scope, const auto& ops) {
          return SsmBranch(
              scope.Sub("mixer"), "_b",
              {kChannels, rank, states, /*dt_bias_scale=*/2, reversed}, ops);
        });
        for (const MixerCase& c : MixerCases()) {
          ExpectEqual(
              branch, c,
              [&](const SsmBranch& own, const at::Tensor& u,
                  const at::Tensor& y) { own.Forward(u, c.length, y); });
        }
      }
    }
  }
}

TEST_P(SsmBranchTest, AddsTheBackwardScanBehindAConvolution) {
  for (const layers::ShortConvolution::Shape& conv :
       {layers::ShortConvolution::Shape{kChannels},
        layers::ShortConvolution::Shape{kChannels, /*taps=*/4, /*left=*/3,
                                        /*bias=*/true}}) {
    const auto branch = Both([&](const auto& scope, const auto& ops) {
      return ConvolvedSsmBranch(
          scope.Sub("mixer"), "conv1d", conv, "",
          {kChannels, /*rank=*/2, /*states=*/8, /*dt_bias_scale=*/1}, ops);
    });
    for (const MixerCase& c : MixerCases()) {
      ExpectEqual(branch, c,
                  [&](const ConvolvedSsmBranch& own, const at::Tensor& x,
                      const at::Tensor& y) {
                    own.Forward(x, c.length, y);
                    own.AddBackward(x, c.length, y);
                  });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SsmBranchTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
