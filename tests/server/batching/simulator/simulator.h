#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SIMULATOR_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SIMULATOR_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/batch_queue.h"
#include "tests/server/batching/simulator/trace.h"

// The real BatchQueue, its decisions and its admission, in virtual time; or a
// FixedQueue beside it.
namespace sfmamba::batching {

// How long a batch of `images` images of `key` takes, without noise.
using BatchCost = std::function<absl::Duration(const BatchKey&, int images)>;

struct SimulatedModel {
  BatchOptions options;
  BatchCost cost;
};

struct SimulationOptions {
  std::vector<SimulatedModel> models;
  int devices = 1;  // Each runs one batch at a time, of any model.
  // Whether FixedQueue takes the BatchQueue's place.
  bool is_fixed = false;
  // Whether requests are refused that would not be answered in time. Without,
  // only max_queue_items limits the queue.
  bool admits = true;
  absl::Duration drain = absl::Seconds(30);
  // From arrival to the queue.
  absl::Duration decode;
  // The time of a batch is multiplied by a lognormal variable of this sigma,
  // and with the probability `outliers` by 3, too.
  double noise = 0;
  double outliers = 0;
  // Whether queues know beforehand how long batches take.
  bool is_measured = true;
  // The measured times of batches of several images are multiplied by this.
  double measured_factor = 1;
  uint32_t seed = 1;
};

// What became of one client's images.
struct ClientResult {
  int offered = 0;
  int refused = 0;
  int in_time = 0;
  absl::Duration device;        // Its images' part of their batches' time.
  absl::Duration longest_wait;  // From the queue to a batch, of all that ran.
};

// A batch that ran, and the device time that each client had of it.
struct RanBatch {
  absl::Duration start;
  std::map<std::string, absl::Duration> device;
};

struct SimulationResult {
  int offered = 0;
  int refused = 0;  // By admission or because the queue was full.
  int dropped = 0;  // From the queue, unrun.
  int late = 0;     // Computed, but not in time.
  int in_time = 0;
  int left = 0;  // Still waiting at the end, which is an error.
  int batches = 0;
  absl::Duration in_small;  // Device time in batches of one image.
  absl::Duration busy;      // Time of all devices.
  // What of it those in time would have needed in the best batches.
  absl::Duration useful;
  absl::Duration end;           // When the last batch ended.
  absl::Duration latency;       // The mean, of those in time.
  absl::Duration longest_wait;  // From arrival to a batch, of all that ran.
  std::array<int, server::kPriorityCount> ran = {};  // Images, by Priority.
  std::vector<int> in_time_by_model;
  std::map<std::string, ClientResult> clients;
  std::vector<RanBatch> ran_batches;
  std::vector<int> order;  // The trace's images that ran, in their order.
  // Broken promises, in words; empty if there are none.
  std::vector<std::string> errors;

  // The part of the offered images that were answered in time.
  double goodput() const {
    return offered == 0 ? 1 : double(in_time) / offered;
  }
  double wasted() const {
    return late + in_time == 0 ? 0 : double(late) / (late + in_time);
  }
};

// Runs a trace to its end. Checks on the way that no task is lost or comes
// twice, no batch is larger than allowed or mixes keys, no more urgent task of
// a batch's key and class stays behind, and no device is idle beyond what
// max_queue_delay allows while a task waits.
SimulationResult Simulate(const SimulationOptions& options,
                          const std::vector<SimulatedRequest>& trace);

// Images a second that `devices` devices compute at best, for requests of these
// kinds.
double Capacity(const SimulationOptions& options,
                const std::vector<RequestKind>& kinds);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SIMULATOR_H_
