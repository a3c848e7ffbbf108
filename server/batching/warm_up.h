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

// An image and a check of its result.
struct Probe {
  std::vector<uint8_t> pixels;  // [height, width, 3] RGB.
  int height = 0, width = 0;
  std::function<absl::Status(const model::Result& result)> check;

  // Returns an input that points to the pixels.
  model::ModelInput input() const {
    model::ModelInput input;
    input.height = height;
    input.width = width;
    input.pixels = pixels.data();
    return input;
  }
};

struct WarmUpOptions {
  // The approximate time for measuring a classifier's batches whose times are
  // unknown. The times of unmeasured sizes are learned while serving.
  absl::Duration profile_budget;
  // Images that run once the first context is prepared. An error of a run or of
  // a check fails the warm-up.
  std::vector<Probe> probes;
  // Set if other models serve requests at the same time. Used until the model
  // is prepared. On a CPU the probes run on this thread, beside the batches of
  // other models. All other preparation and measurement waits for turns on the
  // device, with the lowest priority. On a CPU it takes only short turns, and
  // the remaining sizes are learned from tasks.
  server::Worker* background = nullptr;
  // Called from time to time while contexts are prepared and batches are
  // measured. If it returns true, the warm-up ends with CANCELLED.
  std::function<bool()> stop = [] { return false; };
};

// Prepares the contexts of a model before the first task. Each context is
// prepared. The first context then runs the probes and measures batches.
//
// Thread-compatible. The thread of one context uses it.
class WarmUp {
 public:
  using Runner = absl::StatusOr<std::unique_ptr<BatchRunner>>;

  // `options` and `config` must outlive it. If `on_cpu`, the images of a batch
  // run one by one, or as many at a time as there are CPUs. `turns` are the
  // turns of the device, or null if no other model serves.
  WarmUp(const WarmUpOptions& options, const model::ModelConfig& config,
         int max_batch_size, bool on_cpu, DeviceTurns::Member* turns);

  // Prepares the context of `runner` for batches. `is_first` is true if no
  // other context of the model was prepared before.
  absl::Status Prepare(BatchRunner& runner, bool is_first);
  // Runs the probes with `runner`. If other models use the same CPU, runs them
  // on the background thread with a new runner from `make_unprepared`.
  absl::Status RunProbes(BatchRunner& runner,
                         const std::function<Runner()>& make_unprepared);
  // Measures batches of 1, 2, 4, ... images. On a CPU it stops at the number of
  // images that run at once and extrapolates to larger batches. A size that
  // fails is learned from tasks instead. CANCELLED if stopped; INTERNAL if a
  // value was not finite. Measures nothing if other models serve and a probe
  // took so long that a turn would delay them.
  absl::StatusOr<std::vector<BatchTime>> Measure(BatchRunner& runner);

 private:
  BatchLimits::Size size() const;  // The size of a classifier's images.
  // Waits for a turn of the lowest priority. None if no other model serves.
  std::optional<DeviceTurns::Turn> TakeTurn(absl::Duration cost);
  absl::Status RunProbesHere(BatchRunner& runner, bool takes_turns);
  // Runs batches of `images` images until their time is known. Subtracts the
  // time spent from `left`. None if a run fails.
  absl::StatusOr<std::optional<absl::Duration>> MeasureSize(
      BatchRunner& runner, int images, absl::Duration expected,
      absl::Duration* left);

  const WarmUpOptions& options_;
  const model::ModelConfig& config_;
  const int max_batch_size_;
  const bool on_cpu_;
  DeviceTurns::Member* const turns_;
  absl::Duration longest_probe_;  // The longest probe so far.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_WARM_UP_H_
