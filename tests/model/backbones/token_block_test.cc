#include "model/backbones/token_block.h"

#include "tests/model/against_reference.h"
#include "tests/model/backbones/small_backbone.h"

namespace sfmamba::backbones {
namespace {

// Stage 3 has two Mamba blocks; its last block has attention.
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

TEST_P(TokenBlockTest, ComputesTheFirstTokensOnly) {
  const auto blocks = Make(/*layer_scale=*/true, kAttention);
  for (const int64_t count : {1, 4, 7}) {
    const at::Tensor x = Tokens(/*rows=*/3, 7);
    ops::Residual a = Stream(x), b(x.clone());
    blocks.tested.ForwardFirst(a, count);
    blocks.reference.ForwardFirst(b, count);
    ExpectNear(a.Sum(), b.Sum());
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenBlockTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
