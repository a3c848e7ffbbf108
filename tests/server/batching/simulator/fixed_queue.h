#ifndef SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_FIXED_QUEUE_H_
#define SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_FIXED_QUEUE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "server/batching/admission.h"
#include "server/batching/batch_profile.h"
#include "server/batching/batch_queue.h"
#include "server/batching/batch_task.h"
#include "server/batching/device_turns.h"
#include "server/batching/waiting_tasks.h"

namespace sfmamba::batching {

// The batching policy of other servers, for comparison. Tasks leave in the
// order of arrival, as soon as a batch is full or its first task has waited for
// max_queue_delay. The queue has no priorities and no admission, and drops only
// expired tasks. In the simulator, a FixedQueue can replace a BatchQueue. See
// BatchQueue for the methods.
class FixedQueue {
 public:
  // Ignores `slots` and `devices`.
  FixedQueue(const BatchOptions& options, int slots,
             const std::vector<const DeviceTurns::Member*>& devices);

  void Push(BatchTask task, absl::Time now);
  std::vector<BatchTask> TakeDropped(absl::Time now);
  std::optional<Batch> PopBatch(absl::Time now,
                                absl::Duration waited = absl::ZeroDuration(),
                                const DeviceTurns::Member* device = nullptr);
  void Ran(uint64_t /*number*/, absl::Time /*now*/) {}  // Learns nothing.

  absl::Time Due(absl::Time now) const;
  WaitingTasks::Waiting waiting(server::Priority priority) const {
    return waiting_.waiting(priority);
  }
  int size() const { return waiting_.size(); }
  int CountOf(absl::string_view /*client*/) const { return 0; }

  // Returns an empty estimate, because a FixedQueue predicts nothing. Set
  // SimulationOptions::admits to false for a FixedQueue. The simulator then
  // does not call this method.
  AdmissionEstimate Estimate(const AdmissionRequest& /*request*/,
                             absl::Time /*now*/) const {
    return {};
  }
  BatchProfile& profile() { return profile_; }  // Never used.

 private:
  // Returns when the next batch of the key leaves.
  absl::Time LeaveAt(const WaitingTasks::KeyTasks& waiting) const;

  const BatchOptions options_;
  WaitingTasks waiting_;
  BatchProfile profile_;
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_TESTS_SERVER_BATCHING_SIMULATOR_FIXED_QUEUE_H_
