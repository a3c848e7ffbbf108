// The server's main program with a simulated engine that computes nothing. Each
// batch sleeps one millisecond for each class of its model.

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/server_main.h"
#include "tests/e2e/fake_engine.h"
#include "tests/testing/fake_context.h"

namespace sfmamba {
namespace {

class SleepyModel : public model::VisionModel {
 public:
  explicit SleepyModel(const model::ModelConfig& config) : config_(config) {}

  int contexts() const override { return 1; }
  std::string context_device(int /*index*/) const override { return "fake"; }
  absl::StatusOr<std::unique_ptr<model::ExecutionContext>> MakeContext(
      int /*index*/) override {
    return std::make_unique<model::FakeContext>(
        [this](absl::Span<const model::ModelInput> images) {
          absl::SleepFor(absl::Milliseconds(config_.num_classes));
          model::Classification classification;
          classification.logits.resize(config_.num_classes);
          return std::vector<model::Result>(images.size(), classification);
        });
  }
  absl::Status health() const override { return absl::OkStatus(); }
  const model::ModelConfig& config() const override { return config_; }
  model::Precision precision() const override {
    return model::Precision::kFloat32;
  }
  std::string device() const override { return "sleepy"; }
  int fold_factor(int images) const override { return images; }

 private:
  const model::ModelConfig config_;
};

}  // namespace
}  // namespace sfmamba

int main(int argc, char** argv) {
  return sfmamba::server::ServerMain(
      argc, argv,
      sfmamba::FakeEngine([](const sfmamba::model::ModelConfig& config) {
        return std::make_unique<sfmamba::SleepyModel>(config);
      }));
}
