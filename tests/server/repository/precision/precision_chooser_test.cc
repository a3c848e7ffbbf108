#include "server/repository/precision/precision_chooser.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "model/vision_model.h"
#include "server/repository/golden_images.h"
#include "server/threads/worker.h"
#include "tests/testing/fake_context.h"
#include "tests/testing/patience.h"

namespace sfmamba::repository {
namespace {

using model::Precision;

using Threads = std::set<std::thread::id>;
using Sizes = std::vector<std::pair<int, int>>;  // Each run's.

// A classifier whose logits are its mean pixel, 10 and `third`. Adds the
// threads that it runs on to `threads`, each height and width to `sizes`.
class FakeModel : public model::VisionModel {
 public:
  FakeModel(Precision precision, absl::StatusOr<float> third,
            absl::Duration time, const std::string& device, int* alive,
            Threads* threads, Sizes* sizes)
      : precision_(precision),
        third_(std::move(third)),
        time_(time),
        device_(device),
        alive_(*alive),
        threads_(*threads),
        sizes_(*sizes) {
    ++alive_;
  }
  ~FakeModel() override { --alive_; }

  int contexts() const override { return 1; }
  std::string context_device(int /*index*/) const override { return device_; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images)
            -> absl::StatusOr<std::vector<model::Result>> {
          threads_.insert(std::this_thread::get_id());
          sizes_.emplace_back(images[0].height, images[0].width);
          absl::SleepFor(time_);
          if (!third_.ok()) return third_.status();
          model::Classification answer;
          answer.logits = {images[0].pixels[5] / 255.f, 10, *third_};
          return std::vector<model::Result>(images.size(), answer);
        });
  }
  const model::ModelConfig& config() const override { return config_; }
  Precision precision() const override { return precision_; }
  std::string device() const override { return "a fake"; }
  int fold_factor(int images) const override { return images; }

 private:
  const Precision precision_;
  const absl::StatusOr<float> third_;
  const absl::Duration time_;
  const std::string device_;
  int& alive_;
  Threads& threads_;
  Sizes& sizes_;
  const model::ModelConfig config_;
};

class PrecisionChooserTest : public testing::Test {
 protected:
  PrecisionChooserTest() {
    job_.model = "models/m/versions/1";
    job_.content = "a network";
    job_.load = [this](Precision wanted)
        -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
      const bool reduced = wanted == Precision::kBFloat16;
      loads_ += reduced ? "b" : "f";
      if (!reduced && !load_full_.ok()) return load_full_;
      most_ = std::max(most_, alive_ + 1);
      return std::make_unique<FakeModel>(
          reduced && native_ ? wanted : Precision::kFloat32,
          reduced ? reduced_ : full_, reduced ? reduced_time_ : full_time_,
          device_, &alive_, &threads_, &sizes_);
    };
    job_.images = [this] {
      ++asked_;
      return absl::StatusOr<std::vector<batching::Executor::Probe>>(
          MadeUpImages(model::ModelConfig()));
    };
    job_.has_room = [this] { return room_; };
  }

  // What is chosen; the models of each load in loads_.
  Precision Choose() {
    loads_.clear();
    const auto model = chooser_.Load(job_);
    EXPECT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(alive_, 1) << "the other one is freed";
    return model.ok() ? (*model)->precision() : Precision::kFloat16;
  }

  bool native_ = true, room_ = true;
  absl::StatusOr<float> reduced_ = 5, full_ = 5;
  // Times of an image, far longer than all else that is done.
  absl::Duration reduced_time_ = absl::Milliseconds(2),
                 full_time_ = 10 * reduced_time_;
  absl::Status load_full_;
  std::string device_ = "fake", loads_;
  Threads threads_;
  Sizes sizes_;
  int alive_ = 0, most_ = 0, asked_ = 0;
  PrecisionChooser::Job job_;
  observability::Logger log_{stderr, observability::LogLevel::kError,
                             observability::LogFormat::kText};
  PrecisionChooser chooser_{"", "a build", &log_};
};

TEST_F(PrecisionChooserTest, TakesBf16WhereTheAnswersAreClose) {
  EXPECT_EQ(Choose(), Precision::kBFloat16);
  EXPECT_EQ(loads_, "bf");
  EXPECT_EQ(most_, 2);
}

// An image of height 2 and width 5.
absl::StatusOr<std::vector<batching::Executor::Probe>> OneImage() {
  std::vector<batching::Executor::Probe> images(1);
  images[0].height = 2;
  images[0].width = 5;
  images[0].pixels.assign(3 * 2 * 5, 100);
  return images;
}

TEST_F(PrecisionChooserTest, AnImageKeepsItsSidesAndRunsThreeTimesInEach) {
  reduced_time_ = full_time_ = absl::ZeroDuration();
  job_.images = OneImage;
  EXPECT_TRUE(chooser_.Load(job_).ok());
  EXPECT_EQ(sizes_, Sizes(2 * 3, {2, 5}));
}

TEST_F(PrecisionChooserTest, AnImageThatTakesLongRunsOnceInEach) {
  reduced_time_ = full_time_ = absl::Milliseconds(500);
  job_.images = OneImage;
  EXPECT_TRUE(chooser_.Load(job_).ok());
  EXPECT_EQ(sizes_.size(), 2);
}

TEST_F(PrecisionChooserTest, SlowerThanFp32MeansFp32) {
  std::swap(reduced_time_, full_time_);
  EXPECT_EQ(Choose(), Precision::kFloat32);
  EXPECT_EQ(loads_, "bff");
  EXPECT_EQ(Choose(), Precision::kFloat32);
  EXPECT_EQ(loads_, "bf") << "it is remembered";
}

TEST_F(PrecisionChooserTest, AnotherFirstClassMeansFp32) {
  reduced_ = 10.2f;
  full_ = 9.8f;
  EXPECT_EQ(Choose(), Precision::kFloat32);
  EXPECT_EQ(loads_, "bff");
  EXPECT_EQ(most_, 2) << "never three at a time";
}

TEST_F(PrecisionChooserTest, AnOverflowMeansFp32) {
  reduced_ = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Choose(), Precision::kFloat32);
}

TEST_F(PrecisionChooserTest, AFailureInBf16MeansFp32) {
  reduced_ = absl::InternalError("no kernel");
  EXPECT_EQ(Choose(), Precision::kFloat32);
  EXPECT_EQ(loads_, "bf") << "there is nothing to compare";
}

TEST_F(PrecisionChooserTest, AProcessorWithoutBf16ChecksNothing) {
  native_ = false;
  EXPECT_EQ(Choose(), Precision::kFloat32);
  EXPECT_EQ(loads_, "b");
  EXPECT_EQ(asked_, 0);
}

TEST_F(PrecisionChooserTest, TheSameWeightsAreCheckedOnce) {
  EXPECT_EQ(Choose(), Precision::kBFloat16);
  EXPECT_EQ(Choose(), Precision::kBFloat16);
  EXPECT_EQ(loads_, "b");
  job_.content = "other weights";
  reduced_ = 9;
  EXPECT_EQ(Choose(), Precision::kFloat32);
  EXPECT_EQ(loads_, "bff");
  EXPECT_EQ(Choose(), Precision::kFloat32);
  EXPECT_EQ(loads_, "bf");
  EXPECT_EQ(asked_, 2);
}

TEST_F(PrecisionChooserTest, WithoutRoomForBothItIsFp32AndCheckedLater) {
  room_ = false;
  EXPECT_EQ(Choose(), Precision::kFloat32);
  EXPECT_EQ(most_, 1);
  room_ = true;
  load_full_ = absl::ResourceExhaustedError("out of memory");
  EXPECT_TRUE(absl::IsResourceExhausted(chooser_.Load(job_).status()))
      << "it does not fit alone";
  load_full_ = absl::OkStatus();
  EXPECT_EQ(Choose(), Precision::kBFloat16);
}

TEST_F(PrecisionChooserTest, ErrorsAreThoseOfTheLoad) {
  load_full_ = absl::DataLossError("a broken file");
  EXPECT_EQ(chooser_.Load(job_).status(), load_full_);
  load_full_ = absl::OkStatus();
  full_ = absl::InternalError("no kernel");
  EXPECT_EQ(chooser_.Load(job_).status(), full_.status());
  job_.images = [] {
    return absl::StatusOr<std::vector<batching::Executor::Probe>>(
        absl::InvalidArgumentError("golden images"));
  };
  EXPECT_EQ(chooser_.Load(job_).status().message(), "golden images");
  EXPECT_EQ(alive_, 0);
}

TEST_F(PrecisionChooserTest, EndsWhenItIsToldToStop) {
  for (int last = 0; last < 9; ++last) {
    int asked = 0;
    job_.stop = [&] { return asked++ >= last; };
    EXPECT_TRUE(absl::IsCancelled(chooser_.Load(job_).status())) << last;
    EXPECT_EQ(alive_, 0);
  }
  job_.stop = [] { return false; };
  EXPECT_EQ(Choose(), Precision::kBFloat16) << "nothing was kept";
}

TEST_F(PrecisionChooserTest, WaitsForTurnsWhileOthersServe) {
  server::Worker background({"background"});
  job_.background = &background;
  job_.devices = std::make_shared<batching::Devices>();
  batching::DeviceTurns& device = job_.devices->Get("fake", /*at_once=*/1);
  const auto other = device.Join();
  std::optional<batching::DeviceTurns::Turn> turn =
      other->Take(server::Priority::kLow, absl::Seconds(1));
  std::thread::id chooser;
  std::thread choice([&] {
    chooser = std::this_thread::get_id();
    EXPECT_EQ(Choose(), Precision::kBFloat16);
  });
  WaitUntil([&device] { return device.waiting() == 1; }, "a wish for a turn");
  EXPECT_TRUE(threads_.empty());
  turn.reset();
  Join(choice, "the choice");
  EXPECT_EQ(threads_, Threads({chooser}));
}

TEST_F(PrecisionChooserTest, OnACpuImagesRunBesideTheBatchesOfOthers) {
  server::Worker background({"background"});
  job_.background = &background;
  job_.devices = std::make_shared<batching::Devices>();
  device_ = "cpu";
  const auto other = job_.devices->Get("cpu", /*at_once=*/1).Join();
  const auto turn = other->Take(server::Priority::kLow, absl::Seconds(1));
  EXPECT_EQ(Choose(), Precision::kBFloat16);
  std::thread::id low;
  background.Run([&low] { low = std::this_thread::get_id(); });
  EXPECT_EQ(threads_, Threads({low}));
}

}  // namespace
}  // namespace sfmamba::repository
