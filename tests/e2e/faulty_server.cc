// The server's main program with a simulated device instead of a GPU. The
// device fails permanently when it gets a picture whose first pixel is white.
// Its memory suffices for two pictures whose first pixel is 254, and for no
// picture whose first pixel is 253. Loading a model with nine classes logs an
// error and never ends.

#include <atomic>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "server/server_main.h"
#include "tests/e2e/fake_engine.h"
#include "tests/testing/fake_context.h"

namespace sfmamba {
namespace {

class FaultyModel : public model::VisionModel {
 public:
  explicit FaultyModel(const model::ModelConfig& config) : config_(config) {}

  int contexts() const override { return 1; }
  std::string context_device(int /*index*/) const override { return "fake"; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images) {
          return Compute(images);
        });
  }
  absl::Status health() const override {
    return failed_.load() ? absl::InternalError("device 0: the launch failed")
                          : absl::OkStatus();
  }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override {
    return model::Precision::kFloat32;
  }
  std::string device() const override { return "faulty"; }
  int fold_factor(int images) const override { return images; }

 private:
  absl::StatusOr<std::vector<model::Result>> Compute(
      absl::Span<const model::ModelInput> images) {
    int large = 0;
    for (const model::ModelInput& image : images) {
      if (image.pixels[0] == 254) large += 1;
      if (image.pixels[0] == 253) large += 3;
    }
    if (large > 2) return absl::ResourceExhaustedError("no memory");
    std::vector<model::Result> results;
    for (const model::ModelInput& image : images) {
      if (image.pixels[0] == 255) failed_.store(true);
      model::Classification classification;
      classification.logits.resize(config_.num_classes);
      results.push_back(classification);
    }
    if (failed_.load()) return absl::InternalError("the launch failed");
    return results;
  }

  const model::ModelConfig config_;
  std::atomic<bool> failed_{false};
};

absl::StatusOr<std::unique_ptr<model::VisionModel>> LoadFaulty(
    const model::ModelConfig& config) {
  if (config.num_classes == 9) {
    std::cerr << "this load never ends" << std::endl;
    absl::SleepFor(absl::InfiniteDuration());
  }
  return std::make_unique<FaultyModel>(config);
}

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  return sfmamba::server::ServerMain(argc, argv,
                                     sfmamba::FakeEngine(sfmamba::LoadFaulty));
}
