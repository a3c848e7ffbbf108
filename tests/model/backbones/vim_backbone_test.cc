#include "model/backbones/vim_backbone.h"

#include "tests/model/against_reference.h"

namespace sfmamba::backbones {
namespace {

class VimBackboneTest : public model::AgainstReference {};

TEST_P(VimBackboneTest, GivesTheClassToken) {
  model::BackboneConfig config;
  config.architecture = model::Architecture::kVim;
  config.vim_dim = 19;
  config.vim_depth = 2;
  for (const bool backward : {false, true}) {
    for (const model::Tokens tokens :
         {model::Tokens::kNone, model::Tokens::kData}) {
      config.vim_backward = backward;
      config.tokens = tokens;
      // Images of these sizes have one patch and four patches.
      for (const int64_t size : {16, 32}) {
        const auto backbone = Both([&](const auto& scope, const auto& ops) {
          return VimBackbone(config, size, scope, ops);
        });
        for (const int64_t images : {1, 3}) {
          const at::Tensor x =
              model::RandomValues("x", {images, 3, size, size});
          for (const int64_t rows : {int64_t{0}, int64_t{1}}) {
            const layers::Features own = backbone.tested.Forward(Map(x), rows);
            ASSERT_EQ(own.size(), 1);
            ExpectNear(own[0], backbone.reference.Forward(x, rows)[0]);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, VimBackboneTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::backbones
