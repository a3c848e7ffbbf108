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

// Runs the real BatchQueue, with its decisions and its admission, in virtual
// time. Only the requests and the devices are simulated. The simulator can also
// run a FixedQueue.
namespace sfmamba::batching {

// Returns the duration of a batch of `images` images of `key`, without noise.
using BatchCost = std::function<absl::Duration(const BatchKey&, int images)>;

struct SimulatedModel {
  BatchOptions options;
  BatchCost cost;
};

struct SimulationOptions {
  std::vector<SimulatedModel> models;
  int devices = 1;  // Each device runs one batch of any model.
  // If true, a FixedQueue replaces the BatchQueue.
  bool is_fixed = false;
  // If true, requests that cannot be answered in time are refused. If false,
  // only max_queue_items limits the queue.
  bool admits = true;
  absl::Duration drain = absl::Seconds(30);
  // The time from the arrival of a request until its image enters the queue.
  absl::Duration decode;
  // The duration of a batch is multiplied by a lognormal random number with
  // sigma `noise`. With probability `outliers`, the duration is also multiplied
  // by 3.
  double noise = 0;
  double outliers = 0;
  // If true, queues know the durations of batches from the start.
  bool is_measured = true;
  // Simulates wrong measurements if `is_measured` is true. The durations that
  // queues know from the start are multiplied by this factor. The durations of
  // batches of one image are not multiplied.
  double measured_factor = 1;
  uint32_t seed = 1;
};

// The results of one client's images.
struct ClientResult {
  int offered = 0;
  int refused = 0;
  int in_time = 0;
  absl::Duration device;  // The device time of the images that ran.
  // The longest time that one of the client's images waited in the queue until
  // its batch started. Counts only images that ran.
  absl::Duration longest_wait;
};

// A batch that ran, and the device time of each client in it.
struct RanBatch {
  absl::Duration start;
  std::map<std::string, absl::Duration> device;
};

struct SimulationResult {
  int offered = 0;
  int refused = 0;  // Refused by admission or a full queue.
  int dropped = 0;  // Removed from the queue without running.
  int late = 0;     // Computed too late.
  int in_time = 0;
  int left = 0;  // Waiting at the end, which is an error.
  int batches = 0;
  absl::Duration in_small;  // Device time in batches of one image.
  absl::Duration busy;      // The busy time of all devices.
  // The device time that would suffice for all images that were answered in
  // time, if they ran in batches of the most efficient size.
  absl::Duration useful;
  absl::Duration end;      // The end of the last batch.
  absl::Duration latency;  // The mean latency of all images in time.
  // The longest time that an image waited in the queue until its batch started.
  // Counts only images that ran.
  absl::Duration longest_wait;
  std::array<int, server::kPriorityCount> ran = {};  // Images by Priority.
  std::vector<int> in_time_by_model;
  std::map<std::string, ClientResult> clients;
  std::vector<RanBatch> ran_batches;
  std::vector<int> order;  // Indices in the trace, in the order of running.
  // Descriptions of broken guarantees. Empty if none was broken.
  std::vector<std::string> errors;

  // The fraction of the offered images that were answered in time.
  double goodput() const {
    return offered == 0 ? 1 : double(in_time) / offered;
  }
  // The fraction of the computed images that were late.
  double wasted() const {
    return late + in_time == 0 ? 0 : double(late) / (late + in_time);
  }
};

// Runs a trace to its end and checks guarantees of the queue. No task is lost
// or leaves twice. No batch is larger than allowed or mixes keys. While a task
// waits, no device is idle for longer than max_queue_delay.
SimulationResult Simulate(const SimulationOptions& options,
                          const std::vector<SimulatedRequest>& trace);

// Returns how many images of these kinds of requests the devices can compute
// per second.
double Capacity(const SimulationOptions& options,
                const std::vector<RequestKind>& kinds);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_SIMULATOR_H_
