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

// Simulates the real BatchQueue, its decisions and its admission in virtual
// time. A FixedQueue can replace it.
namespace sfmamba::batching {

// The time of a batch of `images` images of `key`, without noise.
using BatchCost = std::function<absl::Duration(const BatchKey&, int images)>;

struct SimulatedModel {
  BatchOptions options;
  BatchCost cost;
};

struct SimulationOptions {
  std::vector<SimulatedModel> models;
  int devices = 1;  // Each runs one batch at a time, of any model.
  // Whether FixedQueue replaces BatchQueue.
  bool is_fixed = false;
  // Whether requests that cannot be answered in time are refused. If not, only
  // max_queue_items limits the queue.
  bool admits = true;
  absl::Duration drain = absl::Seconds(30);
  // The time from arrival to the queue.
  absl::Duration decode;
  // A batch's time is multiplied by a lognormal variable with this sigma. With
  // the probability `outliers` it is also multiplied by 3.
  double noise = 0;
  double outliers = 0;
  // Whether queues know the times of batches from the start.
  bool is_measured = true;
  // Multiplies the measured times of batches of several images.
  double measured_factor = 1;
  uint32_t seed = 1;
};

// The results of one client's images.
struct ClientResult {
  int offered = 0;
  int refused = 0;
  int in_time = 0;
  absl::Duration device;  // Their share of batch time.
  // The longest wait in the queue of any image that ran.
  absl::Duration longest_wait;
};

// A batch that ran, and the device time of each client in it.
struct RanBatch {
  absl::Duration start;
  std::map<std::string, absl::Duration> device;
};

struct SimulationResult {
  int offered = 0;
  int refused = 0;  // By admission or a full queue.
  int dropped = 0;  // Removed from the queue without running.
  int late = 0;     // Computed too late.
  int in_time = 0;
  int left = 0;  // Waiting at the end, which is an error.
  int batches = 0;
  absl::Duration in_small;  // Device time in batches of one image.
  absl::Duration busy;      // Time of all devices.
  // The part of `busy` that images in time would need in the best batches.
  absl::Duration useful;
  absl::Duration end;      // End of the last batch.
  absl::Duration latency;  // Mean over images in time.
  // The longest time from arrival to a batch of any image that ran.
  absl::Duration longest_wait;
  std::array<int, server::kPriorityCount> ran = {};  // Images, by Priority.
  std::vector<int> in_time_by_model;
  std::map<std::string, ClientResult> clients;
  std::vector<RanBatch> ran_batches;
  std::vector<int> order;  // Images of the trace in the order they ran.
  // Descriptions of broken guarantees; empty if there are none.
  std::vector<std::string> errors;

  // The fraction of the offered images that were answered in time.
  double goodput() const {
    return offered == 0 ? 1 : double(in_time) / offered;
  }
  double wasted() const {
    return late + in_time == 0 ? 0 : double(late) / (late + in_time);
  }
};

// Runs a trace to its end and checks the queue's guarantees. No task is lost or
// leaves twice. No batch is larger than allowed or mixes keys. No batch leaves
// behind a more urgent task of its key and class. No device is idle while a
// task waits, beyond max_queue_delay.
SimulationResult Simulate(const SimulationOptions& options,
                          const std::vector<SimulatedRequest>& trace);

// Returns the maximum images per second of `devices` devices for requests of
// these kinds.
double Capacity(const SimulationOptions& options,
                const std::vector<RequestKind>& kinds);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SIMULATOR_H_
