// Compares classifiers on the emulated device with the CPU's engine.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "c10/core/InferenceMode.h"
#include "gtest/gtest.h"
#include "model/engine/network.h"
#include "model/ops/cuda/cuda_implementation.h"
#include "model/ops/device_ops.h"
#include "model/tuning/scan_plan_chooser.h"
#include "tests/model/deviation.h"
#include "tests/model/emulated_device.h"
#include "tests/model/expected_logits.h"
#include "tests/model/testing.h"
#include "tests/testing/deterministic.h"

namespace sfmamba::model {
namespace {

// Returns a device for which scans are planned, with 132 multiprocessors.
tuning::ScanDevice SomeGpu() { return {"some GPU", 132, "some build"}; }

at::Tensor SmallImages(int count) {
  return DeterministicImages({count, 3, kSmallHeight, kSmallWidth});
}

// The settings with which a model runs on the device.
struct Way {
  Precision precision = Precision::kFloat32;
  int fold_rows = 0;
  bool deterministic = false;
  std::optional<tuning::ScanPlanTable> table;
  bool exact_gelu = false;
  double gamma = 1;  // Layer scales are multiplied by this.
};

// Returns deterministic parameters, with layer scales multiplied by `gamma`.
weights::StateDict::Generator Scaled(double gamma) {
  return [gamma](const std::string& key, at::IntArrayRef shape) {
    at::Tensor values = DeterministicParameter(key, shape);
    if (absl::StrContains(key, "gamma_")) values.mul_(gamma);
    return values;
  };
}

// Returns the logits that the device computes, image after image.
std::vector<float> OnDevice(const ModelConfig& config, const at::Tensor& images,
                            const Way& way = {}) {
  const c10::InferenceMode inference;
  const tuning::ScanPlanChooser chooser(SomeGpu(), way.table,
                                        way.deterministic);
  weights::StateDict weights(Scaled(way.gamma));
  const ops::CudaImplementation cuda(
      EmulatedOps(), at::kCPU,
      {way.precision, &chooser, ops::ConvSearch::kGuess, way.exact_gelu});
  const engine::Network network(config, weights.root(), cuda);
  std::vector<float> logits;
  const std::vector<heads::ImageInfo> infos(images.size(0));
  const at::Tensor answers = network.Answers(
      images.contiguous(at::MemoryFormat::ChannelsLast), way.fold_rows);
  for (const Result& result : network.ToResults(answers, infos)) {
    const auto& own = std::get<Classification>(result).logits;
    logits.insert(logits.end(), own.begin(), own.end());
  }
  return logits;
}

std::vector<float> OnCpu(const ModelConfig& config, const at::Tensor& images) {
  return Logits(*MakeModel(config), images);
}

double Scale(const std::vector<float>& logits) {
  double scale = 0;
  for (const float logit : logits) {
    scale = std::max(scale, std::fabs(double{logit}));
  }
  return scale;
}

void ExpectEqualButForRounding(const std::vector<float>& a,
                               const std::vector<float>& b) {
  EXPECT_LE(LargestDifference(a, b), 2e-5 * Scale(b));
}

// Returns the logits of image `i`.
std::vector<float> Of(const std::vector<float>& logits, int i, int classes) {
  return std::vector<float>(logits.begin() + i * classes,
                            logits.begin() + (i + 1) * classes);
}

void ExpectRightInHalfPrecision(const ModelConfig& config,
                                const at::Tensor& images, Precision precision) {
  Way way;
  way.precision = precision;
  const std::vector<float> logits = OnDevice(config, images, way);
  const std::vector<float> exact = OnCpu(config, images);
  for (int i = 0; i < images.size(0); ++i) {
    const Deviation deviation = DeviationOf(Of(logits, i, config.num_classes),
                                            Of(exact, i, config.num_classes));
    EXPECT_GE(deviation.cosine, 0.9995);
    EXPECT_LE(deviation.largest, 0.05);
    EXPECT_GT(deviation.largest, 1e-5);  // Shows that half precision was used.
    EXPECT_TRUE(deviation.same_argmax);
  }
}

class DeviceKindTest : public testing::TestWithParam<ExpectedLogits> {
 protected:
  DeviceKindTest() { GetParam().change(config_.backbone); }

  ModelConfig config_ = SmallModel();
};

TEST_P(DeviceKindTest, MeetsTheSpecificationAndAgreesWithTheCpu) {
  const at::Tensor images = SmallImages(2);
  const std::vector<float> logits = OnDevice(config_, images);
  EXPECT_LE(LargestDifference(logits, GetParam().logits), 1e-4);
  ExpectEqualButForRounding(logits, OnCpu(config_, images));
}

INSTANTIATE_TEST_SUITE_P(SmallModel, DeviceKindTest,
                         testing::ValuesIn(ExpectedOfSmallModel()),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(DeviceTest, AgreesWithTheReference) {
  const at::Tensor images = SmallImages(2);
  ModelOptions reference;
  reference.reference = true;
  ExpectEqualButForRounding(
      OnDevice(SmallModel(), images),
      Logits(*MakeModel(SmallModel(), reference), images));
}

TEST(DeviceTest, FoldingChangesRoundingOnly) {
  const at::Tensor images = SmallImages(2);
  const std::vector<float> unfolded = OnDevice(SmallModel(), images);
  for (const int rows : {1, 2, 8}) {
    Way way;
    way.fold_rows = rows;
    way.deterministic = rows == 2;
    ExpectEqualButForRounding(OnDevice(SmallModel(), images, way), unfolded);
  }
}

// Returns a table with `plan` for every scan.
tuning::ScanPlanTable Always(const kernels::ScanPlan& plan) {
  tuning::ScanPlanTable table(SomeGpu());
  for (const int stage : {2, 3}) {
    tuning::ScanShape shape;
    shape.channels = SmallModel().backbone.width(stage) / 2;
    shape.states = 8;
    shape.sequences = 8;
    shape.length = stage == 2 ? 18 : 6;
    table.Set({shape, plan, /*microseconds=*/1});
  }
  return table;
}

TEST(DeviceTest, EveryPlanOfATableGivesTheAnswer) {
  const at::Tensor images = SmallImages(2);
  const std::vector<float> expected = OnCpu(SmallModel(), images);
  std::vector<kernels::ScanPlan> plans(4);
  plans[0].lanes = 8;
  plans[1].channels_per_thread = 2;
  plans[1].rows = 4;
  plans[2].kernel = kernels::ScanPlan::kFold;
  plans[2].rows = 2;
  plans[3].kernel = kernels::ScanPlan::kChunk;
  plans[3].chunks = 3;
  for (const kernels::ScanPlan& plan : plans) {
    Way way;
    way.table = Always(plan);
    ExpectEqualButForRounding(OnDevice(SmallModel(), images, way), expected);
  }
}

TEST(DeviceTest, AnImageOfNoNumbersHarmsNoOther) {
  const int classes = SmallModel().num_classes;
  const at::Tensor images = SmallImages(3);
  const std::vector<float> clean = OnDevice(SmallModel(), images);
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity()}) {
    const at::Tensor poisoned = images.clone();
    poisoned[1].fill_(poison);
    for (const int rows : {0, 1}) {
      Way way;
      way.fold_rows = rows;
      const std::vector<float> logits = OnDevice(SmallModel(), poisoned, way);
      for (const int i : {0, 2}) {
        ExpectEqualButForRounding(Of(logits, i, classes),
                                  Of(clean, i, classes));
      }
      EXPECT_TRUE(std::isnan(logits[classes]));
    }
  }
}

// Compares a batch that is padded with black images with batches that are not.
TEST(DeviceTest, PaddingChangesNoAnswer) {
  const int classes = SmallModel().num_classes;
  const at::Tensor images = SmallImages(3).clone();
  const std::vector<float> alone =
      OnDevice(SmallModel(), images.narrow(0, 0, 1));
  images.narrow(0, 1, 2).zero_();
  ExpectEqualButForRounding(Of(OnDevice(SmallModel(), images), 0, classes),
                            alone);
}

TEST(DeviceTest, HalfPrecisionStaysClose) {
  for (const bool layer_scale : {true, false}) {
    ModelConfig config = SmallModel();
    config.backbone.layer_scale = layer_scale;
    ExpectRightInHalfPrecision(config, SmallImages(2), Precision::kBFloat16);
    ExpectRightInHalfPrecision(config, SmallImages(2), Precision::kFloat16);
  }
}

// Prints and returns the largest deviation and the cosine.
Deviation Said(const std::string& what, const std::vector<float>& logits,
               const std::vector<float>& exact) {
  const Deviation deviation = DeviationOf(logits, exact);
  std::printf("%s: largest deviation %.4f, cosine %.7f\n", what.c_str(),
              deviation.largest, deviation.cosine);
  return deviation;
}

// In bf16 the residual streams are bf16, too, and GELU uses its tanh form.
TEST(DeviceTest, VariantsStayCloseInBFloat16) {
  const at::Tensor images = DeterministicImages({1, 3, 224, 224});
  for (const char* variant : {"sf_mamba_t", "sf_mamba_b"}) {
    const ModelConfig config = *VariantConfig(variant);
    const std::vector<float> exact = OnCpu(config, images);
    Way way;
    way.precision = Precision::kBFloat16;
    const Deviation deviation =
        Said(variant, OnDevice(config, images, way), exact);
    EXPECT_LE(deviation.largest, 0.05);
    EXPECT_GE(deviation.cosine, 0.9995);
    EXPECT_TRUE(deviation.same_argmax);
  }
}

// Limits how much GELU's tanh form may change a model's logits.
TEST(DeviceTest, TanhGeluIsLostInHalfPrecision) {
  const at::Tensor images = DeterministicImages({1, 3, 224, 224});
  const ModelConfig config = *VariantConfig("sf_mamba_t");
  Way way;
  way.precision = Precision::kBFloat16;
  const std::vector<float> tanh = OnDevice(config, images, way);
  way.exact_gelu = true;
  const std::vector<float> erf = OnDevice(config, images, way);
  EXPECT_NE(tanh, erf);
  EXPECT_LE(Said("tanh beside erf", tanh, erf).largest, 0.05);
  // The erf form must not be much better: its deviation from fp32 is at least
  // half of the tanh form's.
  const std::vector<float> exact = OnCpu(config, images);
  EXPECT_LE(Said("tanh", tanh, exact).largest,
            2 * Said("erf", erf, exact).largest);
}

// With small layer scales, the values that are added to the stream are small.
// The scales go down to those at the start of a training.
TEST(DeviceTest, SmallLayerScalesStayCloseInBFloat16) {
  const at::Tensor images = SmallImages(2);
  for (const double gamma : {1.0, 0.1, 0.01, 2e-5}) {
    Way way;
    way.gamma = gamma;
    const std::vector<float> exact = OnDevice(SmallModel(), images, way);
    way.precision = Precision::kBFloat16;
    EXPECT_LE(Said(absl::StrCat("layer scales of ", gamma / 2),
                   OnDevice(SmallModel(), images, way), exact)
                  .largest,
              0.05);
  }
}

TEST(DeviceTest, AblationsAgreeWithTheCpu) {
  const at::Tensor images = SmallImages(2);
  for (const ScanMode scan :
       {ScanMode::kSeries, ScanMode::kSeriesGap, ScanMode::kParallelCat,
        ScanMode::kParallelAdd, ScanMode::kParallelAddVim}) {
    ModelConfig config = SmallModel();
    config.backbone.scan = scan;
    config.backbone.tokens = Tokens::kNone;
    ExpectEqualButForRounding(OnDevice(config, images), OnCpu(config, images));
  }
}

TEST(DeviceTest, OneWindowOfTheWholeMapAgreesWithTheCpu) {
  const at::Tensor images = SmallImages(2);
  ModelConfig config = SmallModel();
  config.backbone.window_mode = WindowMode::kFull;
  ExpectEqualButForRounding(OnDevice(config, images), OnCpu(config, images));
  config.backbone.attention_windows = {4, 2};  // The "club" models' windows.
  ExpectEqualButForRounding(OnDevice(config, images), OnCpu(config, images));
}

TEST(DeviceTest, EfficientNetLite0AgreesWithTheCpu) {
  const at::Tensor images = DeterministicImages({2, 3, 73, 60});
  for (ModelConfig config : {LiteModel(), LiteStride32Model()}) {
    config.backbone.depths = {0, 0, 2, 2};
    config.backbone.windows = {4, 2};
    ExpectEqualButForRounding(OnDevice(config, images), OnCpu(config, images));
    ExpectRightInHalfPrecision(config, images, Precision::kBFloat16);
    ExpectRightInHalfPrecision(config, images, Precision::kFloat16);
  }
}

TEST(DeviceTest, VimAgreesWithTheCpu) {
  constexpr int kSize = 48;
  const at::Tensor images = DeterministicImages({2, 3, kSize, kSize});
  for (const char* variant : {"vim_s", "vim_s_uni_swap"}) {
    ModelConfig config = *VariantConfig(variant);
    config.num_classes = 5;
    config.image_size = kSize;
    config.backbone.vim_dim = 24;
    config.backbone.vim_depth = 3;
    const std::vector<float> expected = OnCpu(config, images);
    ExpectEqualButForRounding(OnDevice(config, images), expected);
    Way half;
    half.precision = Precision::kFloat16;
    const std::vector<float> logits = OnDevice(config, images, half);
    EXPECT_GE(DeviationOf(Of(logits, 0, 5), Of(expected, 0, 5)).cosine, 0.9995);
  }
}

}  // namespace
}  // namespace sfmamba::model
