#include "model/layers/layer_norm.h"

#include <utility>
#include <vector>

#include "tests/model/against_reference.h"

namespace sfmamba::layers {
namespace {

class LayerNormTest : public model::AgainstReference {
 protected:
  static Compared<LayerNorm> Make(int width) {
    return Both([&](const auto& scope, const auto& ops) {
      return LayerNorm(scope, width, ops);
    });
  }
};

TEST_P(LayerNormTest, NormalisesTokensAndSwapsEnds) {
  for (const int width : {1, 19, 72}) {
    const auto norm = Make(width);
    for (const int64_t length : {1, 7}) {
      for (const int64_t rows : {1, 3}) {
        const at::Tensor x =
            model::RandomValues("x", {rows, 2 * length, width}) * 3 + 1;
        for (const bool swap : {false, true}) {
          ops::Residual a = Stream(x), b(x.clone());
          const at::Tensor expected = norm.reference.Forward(b, length, swap);
          ExpectNear(norm.tested.Forward(a, length, swap), expected);
          ExpectNear(a.Sum(), b.Sum());
        }
      }
    }
  }
}

TEST_P(LayerNormTest, AddsWhatWaits) {
  const auto norm = Make(19);
  const at::Tensor x = model::RandomValues("x", {3, 7, 19});
  const at::Tensor y = model::RandomValues("y", {3, 7, 19});
  ops::Residual a = Stream(x), b(x.clone());
  a.AddLater(Normed(y));
  b.Add(y);
  ExpectNear(norm.tested.Forward(a, 7, /*swap=*/false),
             norm.reference.Forward(b, 7, /*swap=*/false));
  ExpectNear(a.Sum(), b.Sum());
}

TEST_P(LayerNormTest, NormalisesThePixelsOfMaps) {
  const auto norm = Make(19);
  for (const int64_t images : {1, 3}) {
    for (const auto& [height, width] :
         std::vector<std::pair<int, int>>{{1, 1}, {3, 7}}) {
      const at::Tensor map =
          model::RandomValues("map", {images, 19, height, width});
      const at::Tensor y = norm.tested.ForwardMap(Map(map));
      EXPECT_EQ(y.scalar_type(), at::kFloat);
      ExpectNear(y, norm.reference.ForwardMap(map));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LayerNormTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::layers
