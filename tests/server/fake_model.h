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

// Makes a fake model's batches wait. Thread-safe.
class Gate {
 public:
  void Close() { SetOpen(false); }
  void Open() { SetOpen(true); }

  // Called by the model.
  void Pass();
  // Until a batch, or a mask, waits at the closed gate.
  void WaitForBatch();

  // From now on the device of every model that passes has failed for good.
  void BreakDevice();
  bool device_broken() const;
  // What models are on: "fake" until it is set.
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

// A model of ten classes whose answer follows from the image alone.
//
// As a classifier: ten different sums of the image's values. As a detector: the
// rectangle around what is red, of class 1 and score 0.75, whose mask is full
// but for its top left pixel; nothing where nothing is red. As a segmenter: 2
// where it is red, else 0, with a confidence of 200 and of 100; or, if logits
// are asked for, 1 for these classes in every fourth row and column. Red are
// pixels with more than 128 of it and less of the others, of tensors those with
// a first value above 0.5.
class FakeModel : public model::VisionModel {
 public:
  static constexpr int kSide = 64;  // Side of a classifier's input, in pixels.
  static constexpr int kShortSide = 48, kLongSide = 96;  // The others' sides.
  static constexpr int kPadding = 32;                    // A detector's.
  static constexpr int kClasses = 10;
  static constexpr float kScore = 0.75f;

  // Batches pass `gate`; masks, if it is not null, `mask_gate`.
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
