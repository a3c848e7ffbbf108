#include "tests/server/fake_model.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_context.h"
#include "tests/testing/line_masks.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

// Returns byte `i` of pixels [height, width, 3] in either layout.
uint8_t PixelByte(const model::ModelInput& image, int64_t i) {
  const int64_t plane = int64_t{image.height} * image.width;
  return image.pixels[image.planar ? i % 3 * plane + i / 3 : i];
}

model::Classification Classify(const model::ModelInput& image) {
  model::Classification classification;
  classification.logits.resize(FakeModel::kClasses);
  const int count = 3 * image.height * image.width;
  for (int i = 0; i < count; ++i) {
    const float value =
        image.pixels != nullptr ? PixelByte(image, i) / 255.f : image.values[i];
    classification.logits[i % FakeModel::kClasses] += value * (1 + i % 7) / 100;
  }
  classification.embedding = {classification.logits[0], 1};
  return classification;
}

bool IsRed(const model::ModelInput& image, int x, int y) {
  const int64_t pixel = int64_t{1} * y * image.width + x;
  if (image.values != nullptr) return image.values[pixel] > 0.5f;
  return PixelByte(image, 3 * pixel) > 128 &&
         PixelByte(image, 3 * pixel + 1) <= 128 &&
         PixelByte(image, 3 * pixel + 2) <= 128;
}

// Returns the rectangle around the red pixels in the input. If the input has no
// red pixel, `x2` and `y2` of the rectangle are 0.
model::Box RedBox(const model::ModelInput& image) {
  model::Box box = {static_cast<float>(image.width),
                    static_cast<float>(image.height), 0, 0};
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      if (!IsRed(image, x, y)) continue;
      box.x1 = std::min<float>(box.x1, x);
      box.y1 = std::min<float>(box.y1, y);
      box.x2 = std::max<float>(box.x2, x + 1);
      box.y2 = std::max<float>(box.y2, y + 1);
    }
  }
  return box;
}

// A mask that passes a gate before its pixels are read. If the gate is closed,
// the reading thread waits. If the gate is null, the thread never waits.
class GatedMask final : public PixelMask {
 public:
  GatedMask(base::Mask mask, Gate* gate)
      : PixelMask(std::move(mask)), gate_(gate) {}

  void AddRows(int begin, int end, base::LineRuns* runs) const override {
    if (gate_ != nullptr) gate_->Pass();
    PixelMask::AddRows(begin, end, runs);
  }
  void AddColumns(int begin, int end, base::LineRuns* runs) const override {
    if (gate_ != nullptr) gate_->Pass();
    PixelMask::AddColumns(begin, end, runs);
  }

 private:
  Gate* const gate_;
};

model::Detections Detect(const model::ModelInput& image, Gate* mask_gate) {
  const auto options = model::OptionsOf<model::DetectionOptions>(image.options);
  model::Detection detection;
  detection.box = RedBox(image);
  detection.class_id = 1;
  detection.score = FakeModel::kScore;
  const bool wanted =
      options.classes.empty() ||
      std::binary_search(options.classes.begin(), options.classes.end(), 1);
  if (detection.box.x2 == 0 || !wanted ||
      options.score_threshold.value_or(0) >= detection.score) {
    return {};
  }
  const float scale_x = 1.f * image.original_width / image.width;
  const float scale_y = 1.f * image.original_height / image.height;
  detection.box.x1 *= scale_x;
  detection.box.x2 *= scale_x;
  detection.box.y1 *= scale_y;
  detection.box.y2 *= scale_y;
  if (options.masks) {
    base::Mask mask;
    mask.left = detection.box.x1;
    mask.top = detection.box.y1;
    mask.width = static_cast<int>(detection.box.x2) - mask.left;
    mask.height = static_cast<int>(detection.box.y2) - mask.top;
    mask.data.assign(mask.width * mask.height, 1);
    if (!mask.data.empty()) mask.data[0] = 0;
    detection.mask = std::make_shared<GatedMask>(std::move(mask), mask_gate);
  }
  model::Detections detections;
  detections.detections.push_back(std::move(detection));
  return detections;
}

model::Segmentation Segment(const model::ModelInput& image) {
  const auto options =
      model::OptionsOf<model::SegmentationOptions>(image.options);
  const bool original = options.original_size;
  model::Segmentation map;
  if (options.logits) {
    map.height = (image.height + 3) / 4;
    map.width = (image.width + 3) / 4;
    for (int y = 0; y < image.height; y += 4) {
      for (int x = 0; x < image.width; x += 4) {
        map.logits.resize(map.logits.size() + FakeModel::kClasses);
        *(map.logits.end() - FakeModel::kClasses +
          (IsRed(image, x, y) ? 2 : 0)) = 1;
      }
    }
    return map;
  }
  map.height = original ? image.original_height : image.height;
  map.width = original ? image.original_width : image.width;
  map.areas.resize(FakeModel::kClasses);
  for (int64_t y = 0; y < map.height; ++y) {
    for (int64_t x = 0; x < map.width; ++x) {
      const bool red = IsRed(image, x * image.width / map.width,
                             y * image.height / map.height);
      map.labels.push_back(red ? 2 : 0);
      if (options.confidence) {
        map.confidence.push_back(red ? 200 : 100);
      }
      ++map.areas[red ? 2 : 0];
    }
  }
  return map;
}

}  // namespace

void Gate::Pass() {
  absl::MutexLock lock(&mu_);
  ++waiting_;
  {
    TimeLimit limit("the test to open the gate", kTestPatience);
    mu_.Await(absl::Condition(&open_));
  }
  --waiting_;
}

void Gate::WaitForBatch() {
  const auto waits = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return waiting_ > 0;
  };
  absl::MutexLock lock(&mu_);
  EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&waits), kPatience));
}

void Gate::BreakDevice() {
  absl::MutexLock lock(&mu_);
  device_broken_ = true;
}

bool Gate::device_broken() const {
  absl::MutexLock lock(&mu_);
  return device_broken_;
}

void Gate::SetDevice(const std::string& device) {
  absl::MutexLock lock(&mu_);
  device_ = device;
}

std::string Gate::device() const {
  absl::MutexLock lock(&mu_);
  return device_;
}

void Gate::SetOpen(bool open) {
  absl::MutexLock lock(&mu_);
  open_ = open;
}

absl::Status FakeModel::health() const {
  return gate_.device_broken() ? absl::InternalError("device 0 is broken")
                               : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<model::ExecutionContext>> FakeModel::MakeContext(
    int /*index*/) {
  return std::make_unique<model::FakeContext>(
      [this](absl::Span<const model::ModelInput> images) {
        return Compute(images);
      });
}

absl::StatusOr<std::vector<model::Result>> FakeModel::Compute(
    absl::Span<const model::ModelInput> images) const {
  gate_.Pass();
  if (gate_.device_broken()) return absl::InternalError("there is no device");
  std::vector<model::Result> results;
  for (const model::ModelInput& image : images) {
    if (config_.Padded(image.height) != config_.Padded(images[0].height) ||
        config_.Padded(image.width) != config_.Padded(images[0].width)) {
      return absl::InvalidArgumentError("sizes differ");
    }
    switch (config_.task) {
      case model::VisionTask::kClassification:
        results.push_back(Classify(image));
        break;
      case model::VisionTask::kDetection:
        results.push_back(Detect(image, mask_gate_));
        break;
      case model::VisionTask::kSegmentation:
        results.push_back(Segment(image));
        break;
    }
  }
  return results;
}

}  // namespace sfmamba::server
