#include "model/vision_model.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "ATen/Parallel.h"
#include "ATen/ops/cat.h"
#include "ATen/ops/full.h"
#include "gtest/gtest.h"
#include "model/make_vision_model.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba {
namespace {

at::Tensor SmallImages(int count) {
  return DeterministicImages({count, 3, kSmallHeight, kSmallWidth});
}

// A kind of the small model and its logits for two images, as the
// specification states them, computed in fp64.
struct Expected {
  const char* name;
  void (*change)(BackboneConfig&);
  std::vector<float> logits;
};

std::ostream& operator<<(std::ostream& out, const Expected& expected) {
  return out << expected.name;
}

class ExpectedLogitsTest : public testing::TestWithParam<Expected> {
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
    EXPECT_LE(Difference({/*fuse=*/true, fold_rows}), 1e-4) << fold_rows;
  }
}

TEST_P(ExpectedLogitsTest, HoldInThePlainForm) {
  for (const int fold_rows : {0, 1, 4}) {
    EXPECT_LE(Difference({/*fuse=*/false, fold_rows}), 1e-4) << fold_rows;
  }
}

TEST_P(ExpectedLogitsTest, FusingChangesRoundingOnly) {
  const at::Tensor images = SmallImages(2);
  const std::vector<float> plain =
      Logits(*MakeModel(config_, {/*fuse=*/false}), images);
  double scale = 0;
  for (const float logit : plain) {
    scale = std::max(scale, std::fabs(double{logit}));
  }
  EXPECT_LE(LargestDifference(Logits(*MakeModel(config_), images), plain),
            1e-5 * scale);
}

INSTANTIATE_TEST_SUITE_P(
    SmallModel, ExpectedLogitsTest,
    testing::Values(
        Expected{"MambaVision",
                 [](BackboneConfig& b) { b.tokens = Tokens::kNone; },
                 {-1.346272f, 1.200347f,  1.614334f, -2.344629f, 0.195328f,
                  0.212152f,  -0.187681f, 0.805755f, 0.124909f,  0.345907f,
                  -1.116108f, 1.187059f,  1.656923f, -2.142867f, 0.466773f,
                  0.118257f,  -0.005736f, 0.551676f, -0.146250f, 0.445125f}},
        Expected{"SfMamba",
                 [](BackboneConfig& b) {},
                 {-1.210109f, 1.498856f,  2.115571f, -2.633697f, -0.017992f,
                  0.329917f,  -0.240786f, 0.624643f, 0.401914f,  0.400423f,
                  -1.014018f, 1.444564f,  2.069812f, -2.456361f, 0.313817f,
                  0.331009f,  -0.066037f, 0.354831f, 0.183178f,  0.414456f}},
        Expected{
            "BeforeAttention",
            [](BackboneConfig& b) { b.discard = Discard::kBeforeAttention; },
            {-1.188170f, 1.551860f,  2.123030f, -2.773193f, 0.090986f,
             0.236537f,  -0.155510f, 0.665186f, 0.321763f,  0.290802f,
             -0.992328f, 1.512063f,  2.061082f, -2.572036f, 0.447606f,
             0.252093f,  0.036693f,  0.369945f, 0.077622f,  0.303167f}},
        Expected{
            "AfterAttention",
            [](BackboneConfig& b) { b.discard = Discard::kAfterAttention; },
            {-1.206383f, 1.484425f,  2.110265f, -2.597836f, -0.021116f,
             0.362648f,  -0.243484f, 0.629375f, 0.387816f,  0.357752f,
             -1.024880f, 1.424121f,  2.081953f, -2.435554f, 0.309715f,
             0.350607f,  -0.057716f, 0.347769f, 0.163845f,  0.374129f}},
        Expected{"Learnable",
                 [](BackboneConfig& b) { b.tokens = Tokens::kLearnable; },
                 {-1.662113f, 1.485377f,  1.605001f, -2.558611f, 0.173301f,
                  -0.066263f, -0.101249f, 1.334514f, 0.267236f,  0.142177f,
                  -1.339981f, 1.334092f,  1.601627f, -2.371823f, 0.518184f,
                  -0.135467f, 0.065948f,  1.113252f, 0.031097f,  0.188448f}},
        Expected{"LearnableBeforeAttention",
                 [](BackboneConfig& b) {
                   b.tokens = Tokens::kLearnable;
                   b.discard = Discard::kBeforeAttention;
                 },
                 {-1.513505f, 1.443883f,  1.503983f, -2.487972f, 0.108113f,
                  0.091614f,  -0.150396f, 1.247932f, 0.294657f,  0.363777f,
                  -1.292170f, 1.327031f,  1.505127f, -2.222508f, 0.491132f,
                  0.009537f,  0.099629f,  0.976202f, -0.032145f, 0.416964f}},
        Expected{"SubWindows",
                 [](BackboneConfig& b) {
                   b.attention_windows = {2, 0};
                 },
                 {-1.315383f, 1.276229f,  2.017872f, -2.416316f, -0.076572f,
                  0.518855f,  -0.274236f, 0.505354f, 0.341898f,  0.090982f,
                  -1.114989f, 1.198559f,  2.066166f, -2.266119f, 0.199773f,
                  0.509356f,  -0.174192f, 0.234508f, 0.141792f,  0.121342f}},
        Expected{"SubWindowsWithoutTokens",
                 [](BackboneConfig& b) {
                   b.tokens = Tokens::kNone;
                   b.attention_windows = {2, 0};
                 },
                 {-1.359054f, 1.057783f,  1.493528f, -2.159681f, 0.207598f,
                  0.435517f,  -0.194339f, 0.661057f, 0.165674f,  0.080786f,
                  -1.129881f, 1.038782f,  1.620319f, -1.926295f, 0.428814f,
                  0.325261f,  0.009775f,  0.417280f, -0.122665f, 0.223297f}},
        Expected{"WithoutAttention",
                 [](BackboneConfig& b) {
                   b.tokens = Tokens::kNone;
                   b.attention = false;
                 },
                 {-0.082853f, 1.521423f, 0.888640f, -3.261250f, -0.903510f,
                  0.877793f,  0.256859f, 0.480953f, -0.495472f, -0.040681f,
                  0.087058f,  1.693483f, 0.717795f, -3.188129f, -0.664548f,
                  0.851082f,  0.474080f, 0.053588f, -0.376307f, 0.377176f}},
        Expected{"WithoutAttentionWithTokens",
                 [](BackboneConfig& b) { b.attention = false; },
                 {0.025247f, 1.904032f, 1.300416f,  -3.494830f, -0.944779f,
                  0.688101f, 0.029744f, 0.417370f,  -0.308727f, -0.129210f,
                  0.128881f, 2.026161f, 1.240177f,  -3.501355f, -0.670254f,
                  0.806237f, 0.267802f, -0.007781f, -0.166634f, 0.160296f}}),
    [](const auto& info) { return std::string(info.param.name); });

// Whether image `i` of the batch has the bytes of the answer `alone`.
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

// A model and the side of its images, by name.
struct Sample {
  const char* name;
  ModelConfig config;
  int height, width;
};

ModelConfig Tiny() { return *VariantConfig("sf_mamba_t"); }

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
    testing::Values(Sample{"Small", SmallModel(), kSmallHeight, kSmallWidth},
                    Sample{"Tiny", Tiny(), 224, 224},
                    Sample{"TinyOdd", Tiny(), 97, 130}),
    [](const auto& info) { return std::string(info.param.name); });

// A poisoned image in the batch, in every way that batches are run.
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
  const auto results = model->Run({input});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_LE(LargestDifference(std::get<Classification>((*results)[0]).logits,
                              Logits(*model, values)),
            1e-5);
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
  const auto results = MakeModel(SmallModel())->Run({});
  ASSERT_TRUE(results.ok());
  EXPECT_TRUE(results->empty());
}

TEST(VisionModelTest, RefusesImagesOfDifferentSizes) {
  const auto model = MakeModel(SmallModel());
  const std::vector<float> values(3 * 64 * 64);
  const std::vector<ModelInput> inputs = {{64, 64, nullptr, values.data()},
                                          {64, 32, nullptr, values.data()}};
  const auto results = model->Run(inputs);
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results.status().message(),
            "image 1: expected the first image's size 64x64, got 64x32");
}

TEST(VisionModelTest, RefusesAnImageWithoutExactlyOneSource) {
  const auto model = MakeModel(SmallModel());
  EXPECT_EQ(model->Run({ModelInput{64, 64, nullptr, nullptr}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(VisionModelTest, RefusesAFoldThatDoesNotDivideTheSequences) {
  const auto model = MakeModel(SmallModel(), {/*fuse=*/true, /*fold_rows=*/3});
  const auto results = RunModel(*model, SmallImages(2));
  EXPECT_EQ(results.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(results.status().message(),
            "fold_rows 3 does not divide 8 sequences");
}

TEST(VisionModelTest, TellsHowItFolds) {
  // 96 x 96: stage 3 is 6 x 6, four windows of 4 x 4. Images run one by one.
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
  const auto model = VisionModel::Load(SmallModel(), "no/such/file");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
}

TEST(VisionModelTest, LoadRefusesAnInvalidConfiguration) {
  ModelConfig config = SmallModel();
  config.backbone.num_heads[2] = 7;
  EXPECT_EQ(VisionModel::Load(config, "no/such/file").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sfmamba
