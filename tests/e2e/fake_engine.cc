#include "tests/e2e/fake_engine.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/gpus.h"
#include "model/scan_tuning.h"

namespace sfmamba {

server::Engine FakeEngine(
    std::function<absl::StatusOr<std::unique_ptr<model::VisionModel>>(
        const model::ModelConfig& config)>
        load) {
  server::Engine engine;
  engine.build.version = "fake";
  engine.find_gpus = [] {
    return model::FoundGpus{{}, "this test has no driver"};
  };
  engine.load = [load = std::move(load)](const model::ModelConfig& config,
                                         absl::Span<const std::string>,
                                         const model::ModelOptions&) {
    return load(config);
  };
  engine.make_scan_tuner = [](int, const model::ScanTuner::Options&) {
    return absl::InternalError("nobody asks for it");
  };
  engine.tune_scans = [](int, absl::Span<const model::ModelToTune>,
                         const std::string&) {
    return absl::InternalError("nobody asks for it");
  };
  engine.set_compute_threads = [](int) {};
  return engine;
}

}  // namespace sfmamba
