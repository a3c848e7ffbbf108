#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ATen/ops/empty.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/config.h"
#include "model/engine/make_vision_model.h"
#include "model/weights/state_dict.h"

namespace sfmamba::model {
namespace {

// A variant, perhaps modified, with its published or specified size.
struct Case {
  const char* name;
  const char* variant;
  void (*change)(BackboneConfig&);
  int64_t parameters;
  int tensors;  // Parameters only. 0 if not known.
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

using Shape = std::vector<int64_t>;

// Returns the keys and shapes of a model's parameters.
std::map<std::string, Shape> TakenBy(const ModelConfig& config) {
  EXPECT_EQ(Validate(config), absl::OkStatus());
  std::map<std::string, Shape> taken;
  weights::StateDict weights(
      [&](const std::string& key, at::IntArrayRef shape) {
        EXPECT_TRUE(taken.emplace(key, shape.vec()).second)
            << key << " is taken twice";
        // The tensor is never written to, so even the largest model takes no
        // memory.
        return at::empty(shape, c10::kFloat);
      });
  const auto model =
      engine::MakeVisionModel(config, weights, {/*reference=*/true});
  EXPECT_TRUE(model.ok()) << model.status();
  return taken;
}

class ParameterCountTest : public testing::TestWithParam<Case> {};

void ExpectParameters(const ModelConfig& config, int64_t expected,
                      int expected_tensors) {
  int64_t parameters = 0;
  int tensors = 0;
  for (const auto& [key, shape] : TakenBy(config)) {
    if (absl::StrContains(key, ".running_")) continue;
    int64_t size = 1;
    for (const int64_t dimension : shape) size *= dimension;
    parameters += size;
    ++tensors;
  }
  EXPECT_EQ(parameters, expected);
  if (expected_tensors > 0) {
    EXPECT_EQ(tensors, expected_tensors);
  }
}

TEST_P(ParameterCountTest, IsAsStated) {
  ModelConfig config = *VariantConfig(GetParam().variant);
  GetParam().change(config.backbone);
  ExpectParameters(config, GetParam().parameters, GetParam().tensors);
}

TEST(ClassifierParameterCountTest, TheNecksLayersCountToo) {
  ModelConfig config = *VariantConfig("custom");
  BackboneConfig& backbone = config.backbone;
  backbone.stem = Stem::kEfficientNetLite0Stride32;
  backbone.dim = 24;
  backbone.depths = {0, 0, 0, 3};
  backbone.num_heads = {0, 0, 0, 6};
  config.classifier = {/*channels=*/320, /*features=*/1280};
  config.num_classes = 20;
  ExpectParameters(config, 2'621'204, 163);
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
        // There are two tokens of 320 channels and two of 640 channels.
        Case{"LearnableTokens", "sf_mamba_t",
             [](BackboneConfig& b) { b.tokens = Tokens::kLearnable; },
             31'796'168, 223}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(Stems, ParameterCountTest,
                         testing::Values(Case{"EfficientNetLite0", "custom",
                                              [](BackboneConfig& b) {
                                                b.stem =
                                                    Stem::kEfficientNetLite0;
                                                b.dim = 28;
                                                b.depths = {0, 0, 4, 2};
                                              },
                                              2'829'544, 191}),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

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

// The cases have the names of timm's models.
INSTANTIATE_TEST_SUITE_P(
    MambaOut, ParameterCountTest,
    testing::Values(
        Case{"Femto", "mambaout_femto", AsItIs, 7'304'536, 172},
        Case{"Kobe", "mambaout_kobe", AsItIs, 9'141'208, 220},
        Case{"Tiny", "mambaout_tiny", AsItIs, 26'545'096, 172},
        Case{"Small", "mambaout_small", AsItIs, 48'488'072, 324},
        Case{"Base", "mambaout_base", AsItIs, 84'813'092, 324},
        Case{"SmallRw", "mambaout_small_rw", AsItIs, 48'495'560, 357},
        Case{"BaseShortRw", "mambaout_base_short_rw", AsItIs, 88'827'688, 330},
        Case{"BaseTallRw", "mambaout_base_tall_rw", AsItIs, 86'481'448, 384},
        Case{"BaseWideRw", "mambaout_base_wide_rw", AsItIs, 94'448'104, 357},
        Case{"BasePlusRw", "mambaout_base_plus_rw", AsItIs, 101'656'552, 384},
        Case{"Test", "test_mambaout", AsItIs, 447'560, 78}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    EfficientVim, ParameterCountTest,
    testing::Values(
        Case{"M1", "efficientvim_m1", AsItIs, 6'679'458, 0},
        Case{"M1Dist", "efficientvim_m1_dist", AsItIs, 7'643'462, 0},
        Case{"M2", "efficientvim_m2", AsItIs, 13'903'842, 0},
        Case{"M2Dist", "efficientvim_m2_dist", AsItIs, 15'315'846, 0},
        Case{"M3", "efficientvim_m3", AsItIs, 16'604'174, 0},
        Case{"M3Dist", "efficientvim_m3_dist", AsItIs, 18'176'178, 0},
        Case{"M4", "efficientvim_m4", AsItIs, 19'606'505, 0},
        Case{"M4Dist", "efficientvim_m4_dist", AsItIs, 21'178'509, 0}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    VMamba, ParameterCountTest,
    testing::Values(Case{"TS1L8", "vmamba_t_s1l8", AsItIs, 30'249'064, 276},
                    Case{"TS2L5", "vmamba_t_s2l5", AsItIs, 30'705'832, 222},
                    Case{"SS2L15", "vmamba_s_s2l15", AsItIs, 50'147'752, 402},
                    Case{"SS1L20", "vmamba_s_s1l20", AsItIs, 49'012'840, 492},
                    Case{"BS2L15", "vmamba_b_s2l15", AsItIs, 88'557'800, 402},
                    Case{"BS1L20", "vmamba_b_s1l20", AsItIs, 86'614'504, 492}),
    [](const auto& info) { return std::string(info.param.name); });

// Makes the keys of a MambaVision checkpoint, which are the names in the
// reference implementation.
class MambaVisionKeys {
 public:
  explicit MambaVisionKeys(const ModelConfig& config) {
    const BackboneConfig& backbone = config.backbone;
    const int64_t in_dim = backbone.in_dim, dim = backbone.dim;
    keys_["patch_embed.conv_down.0.weight"] = {in_dim, 3, 3, 3};
    BatchNorm("patch_embed.conv_down.1", in_dim);
    keys_["patch_embed.conv_down.3.weight"] = {dim, in_dim, 3, 3};
    BatchNorm("patch_embed.conv_down.4", dim);
    for (int i = 0; i < 4; ++i) Level(backbone, i);
    BatchNorm("norm", 8 * dim);
    WeightAndBias("head", {config.num_classes, 8 * dim});
  }

  const std::map<std::string, Shape>& keys() const { return keys_; }

 private:
  void WeightAndBias(const std::string& name, Shape weight) {
    keys_[name + ".bias"] = {weight[0]};
    keys_[name + ".weight"] = std::move(weight);
  }
  void BatchNorm(const std::string& name, int64_t channels) {
    WeightAndBias(name, {channels});
    keys_[name + ".running_mean"] = keys_[name + ".running_var"] = {channels};
  }

  void Level(const BackboneConfig& config, int i) {
    const int64_t C = config.dim << i;
    const std::string level = absl::StrCat("levels.", i, ".");
    for (int j = 0; j < config.depths[i]; ++j) {
      const std::string block = absl::StrCat(level, "blocks.", j, ".");
      if (i < 2) {
        WeightAndBias(block + "conv1", {C, C, 3, 3});
        BatchNorm(block + "norm1", C);
        WeightAndBias(block + "conv2", {C, C, 3, 3});
        BatchNorm(block + "norm2", C);
      } else {
        TokenBlock(block, C, config.layer_scale);
        const int mamba_blocks = (config.depths[i] + 1) / 2;
        Mixer(block + "mixer.", C, j < mamba_blocks);
      }
    }
    if (i < 3) {
      keys_[level + "downsample.reduction.0.weight"] = {2 * C, C, 3, 3};
    }
  }

  void TokenBlock(const std::string& block, int64_t C, bool layer_scale) {
    WeightAndBias(block + "norm1", {C});
    WeightAndBias(block + "norm2", {C});
    WeightAndBias(block + "mlp.fc1", {4 * C, C});
    WeightAndBias(block + "mlp.fc2", {C, 4 * C});
    if (layer_scale) {
      keys_[block + "gamma_1"] = keys_[block + "gamma_2"] = {C};
    }
  }

  void Mixer(const std::string& mixer, int64_t C, bool mamba) {
    if (!mamba) {
      WeightAndBias(mixer + "qkv", {3 * C, C});
      WeightAndBias(mixer + "proj", {C, C});
      return;
    }
    const int64_t half = C / 2, rank = (C + 15) / 16;
    keys_[mixer + "A_log"] = {half, 8};
    keys_[mixer + "D"] = {half};
    keys_[mixer + "in_proj.weight"] = {C, C};
    keys_[mixer + "x_proj.weight"] = {rank + 16, half};
    WeightAndBias(mixer + "dt_proj", {half, rank});
    keys_[mixer + "out_proj.weight"] = {C, C};
    keys_[mixer + "conv1d_x.weight"] = {half, 1, 3};
    keys_[mixer + "conv1d_z.weight"] = {half, 1, 3};
  }

  std::map<std::string, Shape> keys_;
};

class KeysTest : public testing::TestWithParam<const char*> {};

TEST_P(KeysTest, AreThoseOfMambaVision) {
  const ModelConfig config = *VariantConfig(GetParam());
  EXPECT_EQ(TakenBy(config), MambaVisionKeys(config).keys());
}

INSTANTIATE_TEST_SUITE_P(Variants, KeysTest,
                         testing::Values("mamba_vision_t", "mamba_vision_t2",
                                         "mamba_vision_s", "mamba_vision_b",
                                         "mamba_vision_l", "mamba_vision_l2",
                                         "sf_mamba_t"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sfmamba::model
