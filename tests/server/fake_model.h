#ifndef SFMAMBA_TESTS_SERVER_FAKE_MODEL_H_
#define SFMAMBA_TESTS_SERVER_FAKE_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "model/vision_model.h"

namespace sfmamba::server {

// Makes threads wait, for example the threads that run a FakeModel's batches. A
// thread that calls Pass() waits while the gate is closed. Thread-safe.
class Gate {
 public:
  void Close() { SetOpen(false); }
  void Open() { SetOpen(true); }

  // Waits while the gate is closed.
  void Pass();
  // Waits until at least one thread is in Pass(), for example with a batch or
  // a mask.
  void WaitForBatch();

  // Makes the device of every model fail permanently from now on.
  void BreakDevice();
  bool device_broken() const;
  // Sets the device of the models, which is "fake" by default.
  void SetDevice(const std::string& device);
  std::string device() const;

 private:
  void SetOpen(bool open);

  mutable absl::Mutex mu_;
  bool open_ ABSL_GUARDED_BY(mu_) = true;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  bool device_broken_ ABSL_GUARDED_BY(mu_) = false;
  std::string device_ ABSL_GUARDED_BY(mu_) = "fake";
};

// A model of ten classes. Its results depend only on the image.
//
// A classifier returns ten different sums of the image's values. A detector
// finds the rectangle around the red pixels, with class 1 and score 0.75. Its
// mask is full except for the top left pixel. Without red pixels it finds
// nothing. A segmenter gives each red pixel class 2 with a confidence of 200.
// All other pixels get class 0 with a confidence of 100. If logits are
// requested, the segmenter returns logits for each pixel in every fourth row
// and column. The logit of the pixel's class is 1, and the others are 0.
//
// A pixel is red if its red value exceeds 128 and the other values do not. A
// pixel of a tensor is red if its first value exceeds 0.5.
class FakeModel : public model::VisionModel {
 public:
  static constexpr int kSide = 64;  // Side of a classifier's input, in pixels.
  static constexpr int kShortSide = 48,
                       kLongSide = 96;  // Sides of other models' inputs.
  static constexpr int kPadding = 32;   // The padding of a detector.
  static constexpr int kClasses = 10;
  static constexpr float kScore = 0.75f;

  // Each batch passes `gate` before it runs. Each mask passes `mask_gate`
  // before its pixels are read, unless `mask_gate` is null.
  FakeModel(const model::ModelConfig& config, Gate* gate,
            Gate* mask_gate = nullptr)
      : config_(config), gate_(*gate), mask_gate_(mask_gate) {}

  int contexts() const override { return 1; }
  std::string context_device(int /*index*/) const override { return "fake"; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int index) override;
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override {
    return model::Precision::kFloat32;
  }
  std::string device() const override { return gate_.device(); }
  absl::Status health() const override;
  int fold_factor(int images) const override { return images; }

 private:
  absl::StatusOr<std::vector<model::Result>> Compute(
      absl::Span<const model::ModelInput> images) const;

  const model::ModelConfig config_;
  Gate& gate_;
  Gate* const mask_gate_;
};

}  // namespace sfmamba::server

#endif  // SFMAMBA_TESTS_SERVER_FAKE_MODEL_H_
