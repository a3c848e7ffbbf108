#include "model/heads/classification_head.h"

#include <array>

#include "tests/model/against_reference.h"

namespace sfmamba::heads {
namespace {

class ClassificationHeadTest : public model::AgainstReference {};

TEST_P(ClassificationHeadTest, GivesLogitsAndTheEmbedding) {
  model::ModelConfig config;
  config.num_classes = 13;
  config.backbone.dim = 3;
  config.backbone.vim_dim = 19;
  for (const model::Architecture architecture :
       {model::Architecture::kHybrid, model::Architecture::kVim}) {
    config.backbone.architecture = architecture;
    const auto head = Both([&](const auto& scope, const auto& ops) {
      return ClassificationHead(config, scope, ops);
    });
    for (const auto& [images, height, width] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {3, 5, 3}}) {
      const at::Tensor map = model::RandomValues(
          "map", {images, config.backbone.feature_width(), height, width});
      const at::Tensor own = head.tested.Answers({Map(map)});
      EXPECT_EQ(own.scalar_type(), at::kFloat);
      ExpectNear(own, head.reference.Answers({map}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ClassificationHeadTest,
                         testing::ValuesIn(model::TestedImplementations()),
                         model::NameOf);

}  // namespace
}  // namespace sfmamba::heads
