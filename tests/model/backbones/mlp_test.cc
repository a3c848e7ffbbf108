#include "model/backbones/mlp.h"

#include <array>
#include <vector>

#include "tests/model/against_reference.h"

namespace sfmamba::backbones {
namespace {

class MlpTest : public model::AgainstReference {};

TEST_P(MlpTest, AddsToTheStream) {
  constexpr int kWidth = 18;
  for (const bool scaled : {false, true}) {
    const auto mlp = Both([&](const auto& scope, const auto& ops) {
      return Mlp(scope, kWidth,
                 scaled ? scope.Take("gamma_2", {kWidth}) : at::Tensor(), ops);
    });
    for (const auto& [rows, tokens] :
         std::vector<std::array<int64_t, 2>>{{1, 1}, {3, 7}}) {
      const at::Tensor x = model::RandomValues("x", {rows, tokens, kWidth});
      const at::Tensor sum = model::RandomValues("sum", x.sizes());
      ops::Residual a = Stream(sum), b(sum.clone());
      mlp.tested.AddTo(a, Normed(x));
      mlp.reference.AddTo(b, x);
      ExpectNear(a.Sum(), b.Sum());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MlpTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
