#include "model/vision_model.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ATen/Parallel.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/full.h"
#include "gtest/gtest.h"
#include "model/engine/make_vision_model.h"
#include "tests/model/dtype_flag.h"
#include "tests/model/expected_logits.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"
#include "tests/testing/planes.h"
#include "tests/testing/run_model.h"

namespace sfmamba::model {
namespace {

at::Tensor SmallImages(int count) {
  return DeterministicImages({count, 3, kSmallHeight, kSmallWidth});
}

class ExpectedLogitsTest : public testing::TestWithParam<ExpectedLogits> {
 protected:
  ExpectedLogitsTest() { GetParam().change(config_.backbone); }

  double Difference(const ModelOptions& options) {
    return LargestDifference(
        Logits(*MakeModel(config_, options), SmallImages(2)),
        GetParam().logits);
  }

  ModelConfig config_ = SmallModel();
};

TEST_P(ExpectedLogitsTest, HoldWithEveryFold) {
  for (const int fold_rows : {0, 1, 2, 4, 8}) {
    EXPECT_LE(Difference({/*reference=*/false, fold_rows}), 1e-4) << fold_rows;
  }
}

TEST_P(ExpectedLogitsTest, HoldInTheReference) {
  for (const int fold_rows : {0, 1, 4}) {
    EXPECT_LE(Difference({/*reference=*/true, fold_rows}), 1e-4) << fold_rows;
  }
}

TEST_P(ExpectedLogitsTest, FusingChangesRoundingOnly) {
  const at::Tensor images = SmallImages(2);
  const std::vector<float> plain =
      Logits(*MakeModel(config_, {/*reference=*/true}), images);
  double scale = 0;
  for (const float logit : plain) {
    scale = std::max(scale, std::fabs(double{logit}));
  }
  EXPECT_LE(LargestDifference(Logits(*MakeModel(config_), images), plain),
            1e-5 * scale);
}

INSTANTIATE_TEST_SUITE_P(SmallModel, ExpectedLogitsTest,
                         testing::ValuesIn(ExpectedOfSmallModel()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

// Expects that an image's answer in a batch has the same bytes as its answer
// `alone`.
void ExpectSameBytes(const Result& alone, const Result& in_batch) {
  const auto& a = std::get<Classification>(alone);
  const auto& b = std::get<Classification>(in_batch);
  ASSERT_EQ(a.logits.size(), b.logits.size());
  ASSERT_EQ(a.embedding.size(), b.embedding.size());
  EXPECT_EQ(0, std::memcmp(a.logits.data(), b.logits.data(),
                           a.logits.size() * sizeof(float)));
  EXPECT_EQ(0, std::memcmp(a.embedding.data(), b.embedding.data(),
                           a.embedding.size() * sizeof(float)));
}

// A model with a name and the side of its images.
struct Sample {
  const char* name;
  ModelConfig config;
  int height, width;
};

ModelConfig Tiny() { return *VariantConfig("sf_mamba_t"); }

// Returns the configuration with this precision. If the CPU has no instructions
// for it, the model computes in fp32.
ModelConfig In(Precision precision, ModelConfig config) {
  config.precision = precision;
  return config;
}
ModelConfig InBf16(const ModelConfig& config) {
  return In(Precision::kBFloat16, config);
}
ModelConfig InInt8(const ModelConfig& config) {
  return In(Precision::kInt8, config);
}

std::ostream& operator<<(std::ostream& out, const Sample& sample) {
  return out << sample.name;
}

class BatchTest : public testing::TestWithParam<Sample> {
 protected:
  at::Tensor Images(int count) {
    return DeterministicImages({count, 3, GetParam().height, GetParam().width});
  }
};

TEST_P(BatchTest, AnAnswerHasTheSameBytesAloneAndInAnyBatch) {
  const auto model = MakeModel(GetParam().config);
  const at::Tensor images = Images(5);
  std::vector<Result> alone;
  for (int i = 0; i < 5; ++i) {
    alone.push_back((*RunModel(*model, images.narrow(0, i, 1)))[0]);
  }
  for (const int size : {2, 3, 5}) {
    const auto batch = RunModel(*model, images.narrow(0, 0, size));
    ASSERT_TRUE(batch.ok()) << batch.status();
    for (int i = 0; i < size; ++i) ExpectSameBytes(alone[i], (*batch)[i]);
  }
}

TEST_P(BatchTest, AnAnswerHasTheSameBytesWithAnyNumberOfThreads) {
  const auto model = MakeModel(GetParam().config);
  const at::Tensor images = Images(3);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto single = RunModel(*model, images);
  for (const int several : {2, 3, 16}) {
    at::set_num_threads(several);
    const auto shared = RunModel(*model, images);
    for (int i = 0; i < 3; ++i) ExpectSameBytes((*single)[i], (*shared)[i]);
  }
  at::set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(
    Models, BatchTest,
    testing::Values(
        Sample{"Small", SmallModel(), kSmallHeight, kSmallWidth},
        Sample{"Tiny", Tiny(), 224, 224}, Sample{"TinyOdd", Tiny(), 97, 130},
        Sample{"Lite", LiteModel(), 160, 160},
        Sample{"LiteOdd", LiteModel(), 97, 130},
        Sample{"SmallBf16", InBf16(SmallModel()), kSmallHeight, kSmallWidth},
        Sample{"TinyOddBf16", InBf16(Tiny()), 97, 130},
        Sample{"LiteBf16", InBf16(LiteModel()), 160, 160},
        Sample{"SmallInt8", InInt8(SmallModel()), kSmallHeight, kSmallWidth},
        Sample{"TinyInt8", InInt8(Tiny()), 224, 224},
        Sample{"TinyOddInt8", InInt8(Tiny()), 97, 130},
        Sample{"LiteInt8", InInt8(LiteModel()), 160, 160},
        Sample{"EfficientVim", *VariantConfig("efficientvim_m1"), 224, 224},
        Sample{"EfficientVimOdd", *VariantConfig("efficientvim_m1"), 97, 130},
        Sample{"EfficientVimBf16", InBf16(*VariantConfig("efficientvim_m1")),
               224, 224}),
    [](const auto& info) { return std::string(info.param.name); });

class BatchOfManyTest : public BatchTest {};

INSTANTIATE_TEST_SUITE_P(
    Models, BatchOfManyTest,
    testing::Values(
        Sample{"SmallBf16", InBf16(SmallModel()), kSmallHeight, kSmallWidth},
        Sample{"SmallInt8", InInt8(SmallModel()), kSmallHeight, kSmallWidth},
        Sample{"EfficientVim", *VariantConfig("efficientvim_m1"), 96, 128}),
    [](const auto& info) { return std::string(info.param.name); });

// One thread computes several of these images together. For SmallModel(), this
// happens only if the CPU has AMX.
TEST_P(BatchOfManyTest, AnImageHasTheSameBytesBesideOthersOnOneThread) {
  const auto model = MakeModel(GetParam().config);
  const at::Tensor images = Images(19);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto together = RunModel(*model, images);
  for (int i = 0; i < 19; ++i) {
    ExpectSameBytes((*RunModel(*model, images.narrow(0, i, 1)))[0],
                    (*together)[i]);
  }
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity()}) {
    at::Tensor dirty = images.clone();
    dirty[1].fill_(poison);
    const auto results = RunModel(*model, dirty);
    ASSERT_TRUE(results.ok()) << results.status();
    for (int i = 0; i < 19; ++i) {
      if (i != 1) ExpectSameBytes((*together)[i], (*results)[i]);
    }
    EXPECT_FALSE(
        std::isfinite(std::get<Classification>((*results)[1]).logits[0]));
  }
  at::set_num_threads(threads);
}

// One image of a batch consists of NaN or infinity. The test's parameter
// contains the options that determine how batches are run.
class IsolationTest : public testing::TestWithParam<ModelOptions> {};

TEST_P(IsolationTest, ANonFiniteImageLeavesItsBatchMatesAlone) {
  const auto model = MakeModel(SmallModel(), GetParam());
  const at::Tensor clean = SmallImages(3);
  const auto expected = RunModel(*model, clean);
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity()}) {
    at::Tensor images = clean.clone();
    images[1].fill_(poison);
    const auto results = RunModel(*model, images);
    ASSERT_TRUE(results.ok()) << results.status();
    ExpectSameBytes((*expected)[0], (*results)[0]);
    ExpectSameBytes((*expected)[2], (*results)[2]);
    EXPECT_FALSE(
        std::isfinite(std::get<Classification>((*results)[1]).logits[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(AllWays, IsolationTest,
                         testing::Values(ModelOptions{true, 0},
                                         ModelOptions{true, 1},
                                         ModelOptions{true, 4},
                                         ModelOptions{false, 0},
                                         ModelOptions{false, 2}));

TEST(VisionModelTest, NormalisesPixels) {
  const auto model = MakeModel(SmallModel());
  std::vector<uint8_t> pixels(kSmallHeight * kSmallWidth * 3);
  at::Tensor values = at::full({1, 3, kSmallHeight, kSmallWidth}, 0.0);
  const ModelConfig& config = model->config();
  for (int y = 0; y < kSmallHeight; ++y) {
    for (int x = 0; x < kSmallWidth; ++x) {
      for (int c = 0; c < 3; ++c) {
        const uint8_t value = (y * 7 + x * 3 + c * 50) % 256;
        pixels[(y * kSmallWidth + x) * 3 + c] = value;
        values[0][c][y][x] = (value / 255.0f - config.mean[c]) / config.std[c];
      }
    }
  }
  ModelInput input;
  input.height = kSmallHeight;
  input.width = kSmallWidth;
  input.pixels = pixels.data();
  const auto results = RunBatch(*model, {input});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_LE(LargestDifference(std::get<Classification>((*results)[0]).logits,
                              Logits(*model, values)),
            1e-5);
  const std::vector<uint8_t> planes = PlanesOf(pixels);
  ModelInput planar = input;
  planar.pixels = planes.data();
  planar.planar = true;
  const auto both = RunBatch(*model, {input, planar});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(std::get<Classification>((*both)[1]).logits,
            std::get<Classification>((*both)[0]).logits);
}

TEST(VisionModelTest, TheEmbeddingIsWhatTheClassifierSees) {
  const auto model = MakeModel(SmallModel());
  const auto results = RunModel(*model, SmallImages(1));
  const auto& result = std::get<Classification>((*results)[0]);
  ASSERT_EQ(result.embedding.size(), 8 * 16);
  const at::Tensor weight = DeterministicParameter("head.weight", {10, 128});
  const at::Tensor bias = DeterministicParameter("head.bias", {10});
  for (int k = 0; k < 10; ++k) {
    double logit = bias[k].item<float>();
    for (int j = 0; j < 128; ++j) {
      logit += weight[k][j].item<double>() * result.embedding[j];
    }
    EXPECT_NEAR(result.logits[k], logit, 1e-5);
  }
}

TEST(VisionModelTest, NoImagesGiveNoResults) {
  const auto results = RunBatch(*MakeModel(SmallModel()), {});
  ASSERT_TRUE(results.ok());
  EXPECT_TRUE(results->empty());
}

TEST(VisionModelTest, CountsTheImagesThatAreInMemoryTogether) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  const auto in_memory = [](VisionModel& model, int images) {
    return (*model.MakeContext(0))->ImagesInMemory(images);
  };
  // Each of two threads computes four images of EfficientViM together.
  const auto model =
      VisionModel::Random(*VariantConfig("efficientvim_m1"), /*seed=*/1);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(in_memory(**model, 8), 8);
  EXPECT_EQ(in_memory(**model, 5), 4);  // The fifth image runs alone.
  EXPECT_EQ(in_memory(**model, 1), 1);
  // All images are folded together.
  EXPECT_EQ(in_memory(*MakeModel(SmallModel(), {false, /*fold_rows=*/2}), 7),
            7);
  at::set_num_threads(threads);
}

TEST(VisionModelTest, RefusesImagesOfDifferentSizes) {
  const auto model = MakeModel(SmallModel());
  const std::vector<float> values(3 * 64 * 64);
  const std::vector<ModelInput> inputs = {{64, 64, nullptr, values.data()},
                                          {64, 32, nullptr, values.data()}};
  const auto results = RunBatch(*model, inputs);
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results.status().message(),
            "image 1: expected the first image's size 64x64, got 64x32");
}

TEST(VisionModelTest, RefusesAnImageWithoutExactlyOneSource) {
  const auto model = MakeModel(SmallModel());
  EXPECT_EQ(
      RunBatch(*model, {ModelInput{64, 64, nullptr, nullptr}}).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(VisionModelTest, RefusesAFoldThatDoesNotDivideTheSequences) {
  const auto model =
      MakeModel(SmallModel(), {/*reference=*/false, /*fold_rows=*/3});
  const auto results = RunModel(*model, SmallImages(2));
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results.status().message(),
            "fold_rows 3 does not divide 8 sequences");
}

TEST(VisionModelTest, TellsHowItFolds) {
  // With 96 x 96 pixels, stage 3 has 6 x 6 tokens, which are four windows of 4
  // x 4. Each window has its own row. By default, the CPU runs images one by
  // one, so a batch of two images does not have more rows.
  EXPECT_EQ(MakeModel(SmallModel())->fold_factor(1), 4);
  EXPECT_EQ(MakeModel(SmallModel())->fold_factor(2), 4);
  EXPECT_EQ(MakeModel(SmallModel(), {true, 2})->fold_factor(2), 2);
}

TEST(VisionModelTest, EveryImageSizeRuns) {
  const auto model = MakeModel(SmallModel());
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 40}, {33, 7}}) {
    const auto results =
        RunModel(*model, DeterministicImages({2, 3, height, width}));
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_TRUE(
        std::isfinite(std::get<Classification>((*results)[1]).logits[0]));
  }
}

TEST(VisionModelTest, LoadNamesAMissingFile) {
  const auto model = VisionModel::Load(SmallModel(), {"no/such/file"});
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
}

TEST(VisionModelTest, LoadRefusesAnInvalidConfiguration) {
  ModelConfig config = SmallModel();
  config.backbone.num_heads[2] = 7;
  EXPECT_EQ(VisionModel::Load(config, {"no/such/file"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sfmamba::model
