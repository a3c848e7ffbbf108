#ifndef SFMAMBA_SERVER_BATCHING_WARM_UP_H_
#define SFMAMBA_SERVER_BATCHING_WARM_UP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "model/result.h"
#include "server/batching/batch_profile.h"
#include "server/batching/batch_runner.h"
#include "server/batching/device_turns.h"
#include "server/threads/worker.h"

namespace sfmamba::batching {

// A test image, and a function that checks the model's result for this image.
struct Probe {
  std::vector<uint8_t> pixels;  // RGB values, [height, width, 3].
  int height = 0, width = 0;
  std::function<absl::Status(const model::Result& result)> check;

  // Returns a model input that points to `pixels`.
  model::ModelInput input() const {
    model::ModelInput input;
    input.height = height;
    input.width = width;
    input.pixels = pixels.data();
    return input;
  }
};

struct WarmUpOptions {
  // The approximate time for measuring a classifier's batches if their
  // durations are unknown. The durations of sizes that are not measured are
  // learned while serving.
  absl::Duration profile_budget;
  // Test images that the model runs after its first context is prepared. If a
  // run or a check fails, the warm-up fails.
  std::vector<Probe> probes;
  // A thread for work in the background. `background` must be set if other
  // models serve requests at the same time, and must stay valid until the model
  // is prepared. On a CPU, the probes then run on this thread, in parallel with
  // the batches of other models. All other preparation and measurement waits
  // for turns on the device, with the lowest priority. Batches that would take
  // long are not measured. Their durations are learned while serving.
  server::Worker* background = nullptr;
  // Called repeatedly while contexts are prepared and batches are measured. If
  // the function returns true, the warm-up ends with CANCELLED.
  std::function<bool()> stop = [] { return false; };
};

// Prepares the execution contexts of a model before the first task. Then runs
// the probes (test images) and measures batches on the first context.
//
// Thread-compatible. Used by one context's thread at a time.
class WarmUp {
 public:
  using Runner = absl::StatusOr<std::unique_ptr<BatchRunner>>;

  // `options` and `config` must outlive this object. `on_cpu` is true if the
  // model runs on the CPU. `turns` hands out turns (rights to run one batch) on
  // the device. If no other model serves requests, `turns` is null.
  WarmUp(const WarmUpOptions& options, const model::ModelConfig& config,
         int max_batch_size, bool on_cpu, DeviceTurns::Member* turns);

  // Prepares the context of `runner` for batches. `is_first` is true for
  // exactly one context of the model, usually the first to be prepared.
  absl::Status Prepare(BatchRunner& runner, bool is_first);
  // Runs the probes with `runner`. If other models use the same CPU, runs the
  // probes on the background thread with a new runner from `make_unprepared`.
  absl::Status RunProbes(BatchRunner& runner,
                         const std::function<Runner()>& make_unprepared);
  // Measures batches of 1, 2, 4, ... images. On a CPU, each usable core is
  // assumed to run one image at a time. The durations of batches with more
  // images than cores are therefore extrapolated, not measured. If a batch
  // fails to run, returns the durations of the smaller sizes. Returns
  // CANCELLED if WarmUpOptions::stop has returned true. Returns INTERNAL if the
  // model's output contains a NaN or an infinity. Measures nothing if the model
  // is not a classifier. Also measures nothing if other models serve requests
  // and a probe took longer than a second.
  absl::StatusOr<std::vector<BatchTime>> Measure(BatchRunner& runner);

 private:
  BatchLimits::Size size() const;  // Returns the padded size of an input.
  // Waits for a turn of the lowest priority. `cost` is the expected duration of
  // the turn. If no other model serves requests, no turn is needed, and the
  // function returns nullopt at once.
  std::optional<DeviceTurns::Turn> TakeTurn(absl::Duration cost);
  absl::Status RunProbesHere(BatchRunner& runner, bool takes_turns);
  // Runs batches of `images` images until their duration is known, and returns
  // this duration. `expected` is the expected duration. `left` is the remaining
  // time for measurements, from which the spent time is subtracted. Returns
  // nullopt if a run fails.
  absl::StatusOr<std::optional<absl::Duration>> MeasureSize(
      BatchRunner& runner, int images, absl::Duration expected,
      absl::Duration* left);

  const WarmUpOptions& options_;
  const model::ModelConfig& config_;
  const int max_batch_size_;
  const bool on_cpu_;
  DeviceTurns::Member* const turns_;
  absl::Duration longest_probe_;  // The duration of the longest probe so far.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_WARM_UP_H_
