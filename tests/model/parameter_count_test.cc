#include <map>
#include <string>

#include "ATen/ops/empty.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "model/make_vision_model.h"
#include "model/state_dict.h"

namespace sfmamba {
namespace {

// A variant, changed, and what its published or specified size is.
struct Case {
  const char* name;
  const char* variant;
  void (*change)(BackboneConfig&);
  int64_t parameters;
  int tensors;  // Parameters only; 0: not stated.
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

void AsItIs(BackboneConfig&) {}

template <ScanMode scan>
void Scan(BackboneConfig& config) {
  config.scan = scan;
}

template <ScanMode scan>
void ScanWithoutAttention(BackboneConfig& config) {
  config.scan = scan;
  config.attention = false;
}

class ParameterCountTest : public testing::TestWithParam<Case> {};

TEST_P(ParameterCountTest, IsAsStated) {
  ModelConfig config = *VariantConfig(GetParam().variant);
  GetParam().change(config.backbone);
  ASSERT_EQ(Validate(config), absl::OkStatus());
  std::map<std::string, int64_t> sizes;
  StateDict weights([&](const std::string& key, at::IntArrayRef shape) {
    // Never written to, so that the largest models take no memory either.
    const at::Tensor tensor = at::empty(shape, c10::kFloat);
    EXPECT_TRUE(sizes.emplace(key, tensor.numel()).second)
        << key << " is taken twice";
    return tensor;
  });
  const auto model = MakeVisionModel(config, weights, {/*fuse=*/false});
  ASSERT_TRUE(model.ok()) << model.status();
  int64_t parameters = 0;
  int tensors = 0;
  for (const auto& [key, size] : sizes) {
    if (absl::StrContains(key, ".running_")) continue;
    parameters += size;
    ++tensors;
  }
  EXPECT_EQ(parameters, GetParam().parameters);
  if (GetParam().tensors > 0) {
    EXPECT_EQ(tensors, GetParam().tensors);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Variants, ParameterCountTest,
    testing::Values(
        Case{"T", "mamba_vision_t", AsItIs, 31'794'248, 219},
        Case{"T2", "mamba_vision_t2", AsItIs, 35'104'008, 265},
        Case{"S", "mamba_vision_s", AsItIs, 50'140'584, 240},
        Case{"B", "mamba_vision_b", AsItIs, 97'685'288, 311},
        Case{"B21k", "mamba_vision_b_21k", AsItIs, 97'685'288, 311},
        Case{"L", "mamba_vision_l", AsItIs, 227'961'048, 311},
        Case{"L21k", "mamba_vision_l_21k", AsItIs, 227'961'048, 311},
        Case{"L2", "mamba_vision_l2", AsItIs, 241'554'824, 344},
        Case{"L2At512", "mamba_vision_l2_512_21k", AsItIs, 241'554'824, 344},
        Case{"L3", "mamba_vision_l3_256_21k", AsItIs, 739'570'472, 0},
        Case{"L3At512", "mamba_vision_l3_512_21k", AsItIs, 739'570'472, 0},
        Case{"DataTokensAddNothing", "sf_mamba_t", AsItIs, 31'794'248, 219},
        // Two tokens of 320 and two of 640 channels.
        Case{"LearnableTokens", "sf_mamba_t",
             [](BackboneConfig& b) { b.tokens = Tokens::kLearnable; },
             31'796'168, 223}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Ablations, ParameterCountTest,
    testing::Values(
        Case{"Series", "mamba_vision_t", Scan<ScanMode::kSeries>, 31'794'248,
             219},
        Case{"SeriesGap", "mamba_vision_t", Scan<ScanMode::kSeriesGap>,
             31'794'248, 219},
        Case{"ParallelCat", "mamba_vision_t", Scan<ScanMode::kParallelCat>,
             31'794'248, 219},
        Case{"ParallelAdd", "mamba_vision_t", Scan<ScanMode::kParallelAdd>,
             31'908'168, 0},
        Case{"ParallelAddVim", "mamba_vision_t",
             Scan<ScanMode::kParallelAddVim>, 33'494'088, 0},
        Case{"WithoutAttention", "mamba_vision_t",
             ScanWithoutAttention<ScanMode::kUni>, 29'444'168, 0},
        Case{"ParallelAddWithoutAttention", "mamba_vision_t",
             ScanWithoutAttention<ScanMode::kParallelAdd>, 29'672'008, 0},
        Case{"ParallelAddVimWithoutAttention", "mamba_vision_t",
             ScanWithoutAttention<ScanMode::kParallelAddVim>, 32'843'848, 0},
        Case{"AttentionOnly", "mamba_vision_t",
             [](BackboneConfig& b) { b.mamba = false; }, 34'144'328, 0}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Vim, ParameterCountTest,
    testing::Values(Case{"T", "vim_t", AsItIs, 7'148'008, 0},
                    Case{"S", "vim_s", AsItIs, 25'796'584, 0},
                    Case{"SUni", "vim_s_uni", AsItIs, 25'853'800, 0},
                    Case{"SUniSwap", "vim_s_uni_swap", AsItIs, 25'853'800, 0}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sfmamba
