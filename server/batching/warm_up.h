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

// An image, and what its result must be.
struct Probe {
  std::vector<uint8_t> pixels;  // [height, width, 3] RGB.
  int height = 0, width = 0;
  std::function<absl::Status(const model::Result& result)> check;

  // Views the pixels.
  model::ModelInput input() const {
    model::ModelInput input;
    input.height = height;
    input.width = width;
    input.pixels = pixels.data();
    return input;
  }
};

struct WarmUpOptions {
  // Batches of a classifier are measured for about this time, if it is not
  // known how long they take. The rest is learnt from tasks.
  absl::Duration profile_budget;
  // Run once the first context is prepared. An error of a check, or of a run,
  // is an error of the warm-up.
  std::vector<Probe> probes;
  // Not null if other models serve meanwhile; used until the model is prepared.
  // On a CPU the probes run on this thread, beside the others' batches. What
  // else prepares and measures waits for its turns on the device, with the
  // lowest priority. On a CPU it takes short ones; what is left out is learnt
  // from tasks.
  server::Worker* background = nullptr;
  // While the contexts are prepared and batches are measured, this is asked now
  // and then whether to end with CANCELLED.
  std::function<bool()> stop = [] { return false; };
};

// What the contexts of a model do before the first task. Each is prepared; the
// first one then runs the probes and measures batches.
//
// Thread-compatible: used by one context's thread.
class WarmUp {
 public:
  using Runner = absl::StatusOr<std::unique_ptr<BatchRunner>>;

  // The options and the configuration outlive it. `on_cpu`: images of a batch
  // run one by one, or as many at a time as there are processors. `turns` are
  // those of the device; null if no other model serves.
  WarmUp(const WarmUpOptions& options, const model::ModelConfig& config,
         int max_batch_size, bool on_cpu, DeviceTurns::Member* turns);

  // Prepares the context of `runner` for batches. `is_first`: no other context
  // of the model was prepared before.
  absl::Status Prepare(BatchRunner& runner, bool is_first);
  // Runs the probes with `runner`, or on the background's thread with what
  // `make_unprepared` makes there.
  absl::Status RunProbes(BatchRunner& runner,
                         const std::function<Runner()>& make_unprepared);
  // Measures batches of 1, 2, 4, ... images; on a CPU up to as many as run at
  // once, from which the times of larger ones follow. What fails is left to be
  // learnt from tasks. CANCELLED if stopped; INTERNAL if a value was not
  // finite. Measures nothing if others serve and a probe took so long that a
  // turn would delay them.
  absl::StatusOr<std::vector<BatchTime>> Measure(BatchRunner& runner);

 private:
  BatchLimits::Size size() const;  // A classifier's images have this size.
  // Waits for a turn of the lowest priority; none if no other model serves.
  std::optional<DeviceTurns::Turn> TakeTurn(absl::Duration cost);
  absl::Status RunProbesHere(BatchRunner& runner, bool takes_turns);
  // Runs batches of `images` images until their time is known, and subtracts
  // what they took from `left`. None if a run fails.
  absl::StatusOr<std::optional<absl::Duration>> MeasureSize(
      BatchRunner& runner, int images, absl::Duration expected,
      absl::Duration* left);

  const WarmUpOptions& options_;
  const model::ModelConfig& config_;
  const int max_batch_size_;
  const bool on_cpu_;
  DeviceTurns::Member* const turns_;
  absl::Duration longest_probe_;  // The longest so far.
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_WARM_UP_H_
