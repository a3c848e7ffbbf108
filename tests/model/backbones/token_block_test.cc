#include "model/backbones/token_block.h"

#include "tests/model/against_reference.h"
#include "tests/model/backbones/small_backbone.h"

namespace sfmamba::backbones {
namespace {

// Stage 3 has two Mamba blocks. Its last block has attention.
constexpr int kStage = 2, kMamba = 1, kAttention = 2;

class TokenBlockTest : public model::AgainstReference {
 protected:
  static Compared<TokenBlock> Make(bool layer_scale, int block) {
    model::BackboneConfig config = SmallBackbone();
    config.layer_scale = layer_scale;
    return Both([&](const auto& scope, const auto& ops) {
      return TokenBlock(scope, config, kStage, block, ops);
    });
  }

  static at::Tensor Tokens(int64_t rows, int64_t tokens) {
    return model::RandomValues("x",
                               {rows, tokens, SmallBackbone().width(kStage)});
  }
};

TEST_P(TokenBlockTest, MixesTokensAndSwapsTheEnds) {
  for (const bool layer_scale : {false, true}) {
    for (const int block : {kMamba, kAttention}) {
      const auto blocks = Make(layer_scale, block);
      for (const int64_t length : {1, 7}) {
        for (const bool swap : {false, true}) {
          const at::Tensor x = Tokens(/*rows=*/3, 2 * length);
          ops::Residual a = Stream(x), b(x.clone());
          blocks.tested.Forward(a, length, swap);
          blocks.reference.Forward(b, length, swap);
          ExpectNear(a.Sum(), b.Sum());
        }
      }
    }
  }
}

TEST_P(TokenBlockTest, ComputesSomeTokensOnly) {
  constexpr int kLength = 7;
  const auto blocks = Make(/*layer_scale=*/true, kAttention);
  const at::Tensor x = Tokens(/*rows=*/3, kLength);
  ops::Residual all(x.clone());
  blocks.reference.Forward(all, kLength, /*swap=*/false);
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 1}, {0, 4}, {0, kLength}, {1, 5}, {3, 1}, {2, 5}}) {
    ops::Residual a = Stream(x);
    blocks.tested.ForwardPart(a, first, count);
    ExpectNear(a.Sum(), all.Sum().narrow(1, first, count));
  }
}

TEST_P(TokenBlockTest, AScanHasNoPart) {
  ops::Residual x = Stream(Tokens(/*rows=*/1, 7));
  EXPECT_THROW(Make(false, kMamba).tested.ForwardPart(x, 1, 5), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(All, TokenBlockTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
