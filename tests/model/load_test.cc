#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "ATen/ops/zeros.h"
#include "ATen/ops/zeros_like.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/weights.h"

namespace sfmamba::model {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;

// Writes the small model's weights to a file and loads this file.
class LoadTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<VisionModel>> Load(const Tensors& tensors) {
    EXPECT_EQ(WriteWeights(path_, tensors), absl::OkStatus());
    return VisionModel::Load(config_, {path_}, options_);
  }

  void ExpectSameLogits(const Tensors& tensors) {
    const auto loaded = Load(tensors);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(Logits(**loaded, images_), Logits(*MakeModel(config_), images_));
  }

  std::string ErrorOf(const Tensors& tensors) {
    const absl::Status status = Load(tensors).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  ModelConfig config_ = SmallModel();
  ModelOptions options_;
  const std::string path_ = testing::TempDir() + "/small.safetensors";
  const at::Tensor images_ =
      DeterministicImages({1, 3, kSmallHeight, kSmallWidth});
  Tensors weights_ = DeterministicWeights(config_);
};

TEST_F(LoadTest, AFileGivesTheModelThatItHolds) { ExpectSameLogits(weights_); }

TEST_F(LoadTest, TheDeviceNamesThePrecisionThatRuns) {
  const auto device = [this](Precision precision) {
    config_.precision = precision;
    return MakeModel(config_)->device();
  };
  EXPECT_THAT(device(Precision::kFloat32), EndsWith(", fp32)"));
  // On CPUs, fp16 is replaced by fp32.
  EXPECT_THAT(device(Precision::kFloat16), EndsWith(", fp32)"));
  config_.precision = Precision::kBFloat16;
  const auto model = MakeModel(config_);
  EXPECT_THAT(model->device(),
              EndsWith(model->precision() == Precision::kBFloat16 ? ", bf16)"
                                                                  : ", fp32)"));
}

// This must hold in builds with and without CUDA.
TEST_F(LoadTest, AGpuThatIsNotThereIsRefused) {
  options_.gpus = {99};
  EXPECT_THAT(ErrorOf(weights_), HasSubstr("GPU"));
}

TEST_F(LoadTest, CountersAndPrefixesDoNotMatter) {
  Tensors wrapped;
  for (const auto& [key, tensor] : weights_) {
    wrapped["module." + key] = tensor;
  }
  wrapped["module.norm.num_batches_tracked"] = at::zeros({}, c10::kLong);
  ExpectSameLogits(wrapped);
}

TEST_F(LoadTest, KeysOfCompiledAndWrappedModelsAreFound) {
  Tensors compiled, wrapped;
  for (const auto& [key, tensor] : weights_) {
    const bool head = absl::StartsWith(key, "head.");
    compiled[absl::StrCat("_orig_mod.model._orig_mod.", key)] = tensor;
    wrapped[absl::StrCat(head ? "" : "model.", key)] = tensor;
  }
  ExpectSameLogits(compiled);
  ExpectSameLogits(wrapped);
  // If a name could mean two tensors, loading must fail.
  Tensors twice = weights_;
  twice["_orig_mod.head.bias"] = at::zeros_like(weights_["head.bias"]);
  EXPECT_THAT(ErrorOf(twice), HasSubstr("_orig_mod.head.bias"));
  compiled["_orig_mod.model.head.bias"] = weights_["head.bias"];
  EXPECT_NE(ErrorOf(compiled), "");
}

TEST_F(LoadTest, TensorsMayComeInSeveralFiles) {
  Tensors parts[2];
  for (const auto& [key, tensor] : weights_) {
    parts[parts[0].size() > parts[1].size()][key] = tensor;
  }
  const std::string paths[] = {path_ + "-1", path_ + "-2"};
  for (int i : {0, 1}) ASSERT_TRUE(WriteWeights(paths[i], parts[i]).ok());
  const auto loaded = VisionModel::Load(config_, paths);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Logits(**loaded, images_), Logits(*MakeModel(config_), images_));
  const absl::Status twice =
      VisionModel::Load(config_, {paths[0], paths[1], paths[0]}).status();
  EXPECT_EQ(twice.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(VisionModel::Load(config_, {paths[1]}).ok());
}

TEST_F(LoadTest, HalfPrecisionIsWidened) {
  for (const c10::ScalarType type : {c10::kHalf, c10::kBFloat16}) {
    Tensors stored, widened;
    for (const auto& [key, tensor] : weights_) {
      stored[key] = tensor.to(type);
      widened[key] = stored[key].to(c10::kFloat);
    }
    const auto half = Load(stored);
    ASSERT_TRUE(half.ok()) << half.status();
    const std::vector<float> logits = Logits(**half, images_);
    const auto full = Load(widened);
    ASSERT_TRUE(full.ok()) << full.status();
    EXPECT_EQ(logits, Logits(**full, images_));
  }
}

TEST_F(LoadTest, EveryTensorThatDoesNotFitIsNamed) {
  weights_.erase("levels.2.blocks.0.mixer.A_log");
  weights_.erase("norm.running_var");
  weights_["head.weight"] = at::zeros({12, 128});
  weights_["levels.3.blocks.2.mlp.fc1.bias"] = at::zeros({512}, c10::kDouble);
  weights_["levels.3.blocks.3.norm1.weight"] = at::zeros({128});
  const std::string error = ErrorOf(weights_);
  for (const char* part :
       {"levels.2.blocks.0.mixer.A_log: missing, expected [32, 8]",
        "norm.running_var: missing, expected [128]",
        "head.weight: expected [10, 128], got [12, 128]",
        "levels.3.blocks.2.mlp.fc1.bias: expected F32, F16 or BF16, got F64",
        "levels.3.blocks.3.norm1.weight: surplus, [128]"}) {
    EXPECT_THAT(error, HasSubstr(part));
  }
  EXPECT_EQ(std::count(error.begin(), error.end(), ';'), 4) << error;
}

TEST_F(LoadTest, EachTensorIsNeededInItsShape) {
  config_.backbone.dim = config_.backbone.in_dim = 4;  // Makes files of 200 kB.
  config_.backbone.num_heads = {1, 1, 2, 2};
  config_.backbone.depths = {1, 1, 2, 2};
  options_.reference = true;  // Avoids packing weights, which is slow.
  const Tensors weights = DeterministicWeights(config_);
  for (const auto& [key, tensor] : weights) {
    Tensors changed = weights;
    changed.erase(key);
    const std::string missing = ErrorOf(changed);
    EXPECT_THAT(missing, HasSubstr(absl::StrCat(key, ": missing")));
    EXPECT_EQ(missing.find(';'), std::string::npos) << missing;
    changed[key] = tensor.unsqueeze(0);
    const std::string misshapen = ErrorOf(changed);
    EXPECT_THAT(misshapen, HasSubstr(absl::StrCat(key, ": expected [")));
    EXPECT_EQ(misshapen.find(';'), std::string::npos) << misshapen;
  }
}

TEST_F(LoadTest, AnotherVariantsWeightsAreRefused) {
  ModelConfig other = config_;
  other.backbone.tokens = Tokens::kLearnable;
  EXPECT_THAT(ErrorOf(DeterministicWeights(other)),
              HasSubstr("levels.2.aux_head: surplus, [1, 1, 64]"));
  other = config_;
  other.backbone.dim = 8;
  EXPECT_THAT(ErrorOf(DeterministicWeights(other)), HasSubstr("more"));
}

TEST_F(LoadTest, AnotherStemsWeightsAreRefused) {
  const Tensors small = weights_;
  config_ = LiteModel();
  weights_ = DeterministicWeights(config_);
  EXPECT_TRUE(Load(weights_).ok());
  weights_.erase("trunk.blocks.3.expand.bn.running_mean");
  weights_["trunk.blocks.3.depthwise.conv.weight"] =
      at::zeros({144, 144, 5, 5});
  weights_["trunk.blocks.0.expand.conv.weight"] = at::zeros({32, 32, 1, 1});
  weights_["levels.0.downsample.reduction.0.weight"] =
      at::zeros({56, 28, 3, 3});
  const std::string error = ErrorOf(weights_);
  for (const char* part :
       {"trunk.blocks.3.expand.bn.running_mean: missing, expected [144]",
        "trunk.blocks.3.depthwise.conv.weight: expected [144, 1, 5, 5], got "
        "[144, 144, 5, 5]",
        "trunk.blocks.0.expand.conv.weight: surplus, [32, 32, 1, 1]",
        "levels.0.downsample.reduction.0.weight: surplus"}) {
    EXPECT_THAT(error, HasSubstr(part));
  }
  EXPECT_EQ(std::count(error.begin(), error.end(), ';'), 3) << error;
  EXPECT_THAT(ErrorOf(small), HasSubstr("more"));
}

TEST_F(LoadTest, ADamagedFileIsRefused) {
  ASSERT_EQ(WriteWeights(path_, weights_), absl::OkStatus());
  std::ifstream in(path_, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (const size_t size : {size_t{0}, size_t{4}, size_t{100}, bytes.size() / 2,
                            bytes.size() - 1}) {
    std::ofstream(path_, std::ios::binary) << bytes.substr(0, size);
    const absl::Status status = VisionModel::Load(config_, {path_}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr("small.safetensors"));
  }
}

}  // namespace
}  // namespace sfmamba::model
