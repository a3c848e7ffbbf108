// Tests batches of pictures in uint8 that all have the same size. The server
// gives a model such batches. The model pads them and replays recorded graphs.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "tests/gpu/model_device.h"
#include "tests/model/testing.h"
#include "tests/testing/patience.h"
#include "tests/testing/planes.h"
#include "tests/testing/run_model.h"

namespace sfmamba {
namespace {

constexpr int kSide = 32;

// Pictures of noise. Another seed gives other pictures.
class Pictures {
 public:
  Pictures(int count, uint32_t seed, int side = kSide)
      : pixels_(count, std::vector<uint8_t>(size_t{3} * side * side)) {
    uint32_t state = seed;
    for (std::vector<uint8_t>& pixels : pixels_) {
      for (uint8_t& value : pixels) {
        state = state * 1664525 + 1013904223;
        value = state >> 24;
      }
      model::ModelInput input;
      input.height = input.width = side;
      input.pixels = pixels.data();
      inputs_.push_back(input);
    }
  }

  const std::vector<model::ModelInput>& inputs() const { return inputs_; }

  // Returns the pictures as normalised values, computed here.
  std::vector<std::vector<float>> Values(
      const model::ModelConfig& config) const {
    std::vector<std::vector<float>> all;
    for (const std::vector<uint8_t>& pixels : pixels_) {
      const size_t each = pixels.size() / 3;
      std::vector<float> values(pixels.size());
      for (size_t i = 0; i < pixels.size(); ++i) {
        const size_t c = i % 3;
        values[c * each + i / 3] =
            (pixels[i] / 255.0f - config.mean[c]) / config.std[c];
      }
      all.push_back(std::move(values));
    }
    return all;
  }

 private:
  std::vector<std::vector<uint8_t>> pixels_;
  std::vector<model::ModelInput> inputs_;
};

using Answers = std::vector<std::vector<float>>;

Answers LogitsOf(const absl::StatusOr<std::vector<model::Result>>& results) {
  EXPECT_TRUE(results.ok()) << results.status();
  Answers answers;
  if (!results.ok()) return answers;
  for (const model::Result& result : *results) {
    answers.push_back(std::get<model::Classification>(result).logits);
  }
  return answers;
}

Answers RunPixels(model::ExecutionContext& context, const Pictures& pictures,
                  model::RunInfo* info = nullptr) {
  return LogitsOf(model::RunBatch(context, pictures.inputs(), info));
}

// Runs the pictures as values. If `apart`, the batch must be neither padded nor
// recorded. So adds a picture as pixels, because the model neither pads nor
// records batches with both values and pixels.
Answers RunValues(model::ExecutionContext& context, const Pictures& pictures,
                  bool apart = true) {
  const auto values = pictures.Values(model::SmallModel());
  std::vector<model::ModelInput> inputs = pictures.inputs();
  if (apart) inputs.push_back(inputs.front());
  for (size_t i = 0; i < values.size(); ++i) {
    inputs[i].pixels = nullptr;
    inputs[i].values = values[i].data();
  }
  Answers answers = LogitsOf(model::RunBatch(context, inputs));
  answers.resize(std::min(answers.size(), values.size()));
  return answers;
}

// Prints the largest deviation and then checks it.
void ExpectNear(const Answers& answers, const Answers& expected,
                double tolerance, const std::string& what) {
  ASSERT_EQ(answers.size(), expected.size()) << what;
  double largest = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    largest =
        std::max(largest, model::LargestDifference(answers[i], expected[i]));
  }
  std::printf("%s: largest deviation %.2g\n", what.c_str(), largest);
  EXPECT_LE(largest, tolerance) << what;
}

class GpuPixelsTest : public testing::TestWithParam<model::Precision> {
 protected:
  void SetUp() override {
    if (!HasModelDevice()) GTEST_SKIP() << "no GPU";
    model::ModelConfig config = model::SmallModel();
    config.image_size = kSide;
    config.precision = GetParam();
    config_ = config;
    model_ = Load();
    // All answers must come from one context. In another context, libraries may
    // choose other algorithms, which may change the last bits.
    context_ = model::MakeContext(*model_);
  }

  std::unique_ptr<model::VisionModel> Load() const {
    model::ModelOptions options = OnModelDevice();
    options.capture_failed = [](const absl::Status& status) {
      ADD_FAILURE() << "a graph was not recorded: " << status;
    };
    return model::MakeModel(config_, options);
  }

  double tolerance() const {
    return GetParam() == model::Precision::kFloat32 ? 1e-4 : 0.1;
  }
  void ExpectAsValues(model::ExecutionContext& context, int count,
                      uint32_t seed, const std::string& what) {
    const Pictures pictures(count, seed);
    ExpectNear(RunPixels(context, pictures), RunValues(context, pictures),
               tolerance(), what);
  }

  model::ModelConfig config_;
  std::unique_ptr<model::VisionModel> model_;
  std::unique_ptr<model::ExecutionContext> context_;
};

TEST_P(GpuPixelsTest, EachRunOfASizeAnswersItsOwnPictures) {
  const auto other = model::MakeContext(*model_);
  // In each context, the first run is recorded as a graph. The second and the
  // third run replay it.
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    ExpectAsValues(seed % 2 == 0 ? *context_ : *other, 3, seed,
                   "3 pictures, seed " + std::to_string(seed));
  }
}

TEST_P(GpuPixelsTest, AReplayHasTheBytesOfTheFirstRun) {
  const Pictures pictures(4, /*seed=*/1);
  const Answers first = RunPixels(*context_, pictures);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(RunPixels(*context_, pictures), first) << i;
}

TEST_P(GpuPixelsTest, ValuesArePaddedAndReplayedToo) {
  for (uint32_t seed = 1; seed <= 2; ++seed) {
    for (const int count : {3, 9}) {
      const Pictures pictures(count, seed);
      ExpectNear(RunValues(*context_, pictures, /*apart=*/false),
                 RunValues(*context_, pictures), tolerance(),
                 std::to_string(count) + " as values");
      ExpectAsValues(*context_, count, seed, "pixels between them");
    }
  }
}

TEST_P(GpuPixelsTest, PlanesHaveTheBytesOfPixels) {
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    const Pictures pictures(9, seed);
    const Answers expected = RunPixels(*context_, pictures);
    std::vector<model::ModelInput> inputs = pictures.inputs();
    std::vector<std::vector<uint8_t>> planes;
    for (size_t i = seed - 1; i < inputs.size(); i += seed) {
      const uint8_t* const pixels = inputs[i].pixels;
      planes.push_back(PlanesOf({pixels, pixels + 3 * kSide * kSide}));
      inputs[i].pixels = planes.back().data();
      inputs[i].planar = true;
    }
    EXPECT_EQ(LogitsOf(model::RunBatch(*context_, inputs)), expected) << seed;
  }
}

TEST_P(GpuPixelsTest, PaddingChangesNoAnswer) {
  const Pictures ten(10, /*seed=*/1);
  const Pictures nine(9, /*seed=*/1);  // Padded to ten.
  for (int run = 0; run < 4; ++run) {
    model::RunInfo info;
    Answers all = RunPixels(*context_, ten);
    all.pop_back();
    EXPECT_EQ(RunPixels(*context_, nine, &info), all) << run;
    EXPECT_GE(info.padded_images, 9);
  }
  // The memory after the nine pictures still contains the tenth, which must not
  // matter.
  ExpectNear(RunPixels(*context_, nine), RunValues(*context_, nine),
             tolerance(), "nine as values");
}

TEST_P(GpuPixelsTest, LargerBatchesLeaveSmallerOnesRight) {
  const auto other = model::MakeContext(*model_);
  uint32_t seed = 0;
  for (const int count : {1, 2, 1, 12, 1, 2, 20, 12, 1}) {
    for (model::ExecutionContext* context : {context_.get(), other.get()}) {
      ++seed;
      ExpectAsValues(
          *context, count, seed,
          std::to_string(count) + " pictures, seed " + std::to_string(seed));
    }
  }
}

TEST_P(GpuPixelsTest, SizesDoNotMixTheirPictures) {
  for (int run = 0; run < 3; ++run) {
    for (const int side : {32, 48, 64}) {
      const Pictures pictures(2, /*seed=*/side + run, side);
      ExpectNear(RunPixels(*context_, pictures), RunValues(*context_, pictures),
                 tolerance(),
                 std::to_string(side) + " pixels, run " + std::to_string(run));
    }
  }
}

TEST_P(GpuPixelsTest, CallersAtATimeGetTheirOwnAnswers) {
  constexpr int kCallers = 3, kRuns = 6;
  std::vector<Pictures> pictures;
  std::vector<Answers> alone;
  for (int i = 0; i < kCallers; ++i) {
    pictures.emplace_back(2 + i, /*seed=*/100 + i);
    alone.push_back(RunValues(*context_, pictures[i]));
  }
  std::vector<std::vector<Answers>> together(kCallers);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      const auto context = model::MakeContext(*model_);
      for (int run = 0; run < kRuns; ++run) {
        together[i].push_back(RunPixels(*context, pictures[i]));
      }
    });
  }
  for (std::thread& caller : callers) {
    Join(caller, "a caller's answers", absl::Minutes(4));
  }
  for (int i = 0; i < kCallers; ++i) {
    for (const Answers& answers : together[i]) {
      ExpectNear(answers, alone[i], tolerance(), "caller " + std::to_string(i));
    }
  }
}

// One model chooses algorithms and records graphs while another model does this
// or runs.
TEST_P(GpuPixelsTest, TwoModelsPrepareAndRunAtATime) {
  const std::unique_ptr<model::VisionModel> other = Load();
  const auto run = [this](model::VisionModel& model, uint32_t seed) {
    const auto context = model::MakeContext(model);
    for (int count = 1; count <= 5; ++count) {
      for (int i = 0; i < 3; ++i) {
        const Pictures pictures(count, ++seed);
        ExpectNear(RunPixels(*context, pictures), RunValues(*context, pictures),
                   tolerance(), "seed " + std::to_string(seed));
      }
    }
  };
  std::thread caller([&] { run(*other, 100); });
  run(*model_, 200);
  Join(caller, "the other model", absl::Minutes(4));
}

TEST_P(GpuPixelsTest, APreparedModelAnswersAsAnother) {
  const Pictures pictures(5, /*seed=*/1);
  const Answers unprepared = RunPixels(*context_, pictures);
  ASSERT_TRUE(context_->Prepare(1, 12).ok());
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(RunPixels(*context_, pictures), unprepared) << run;
    ExpectAsValues(*context_, 11, /*seed=*/run + 1,
                   "11 pictures, run " + std::to_string(run));
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuPixelsTest,
                         testing::Values(model::Precision::kFloat32,
                                         model::Precision::kBFloat16),
                         [](const auto& info) {
                           return info.param == model::Precision::kFloat32
                                      ? "Fp32"
                                      : "Bf16";
                         });

}  // namespace
}  // namespace sfmamba
