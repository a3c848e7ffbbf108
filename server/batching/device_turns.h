#ifndef SFMAMBA_SERVER_BATCHING_DEVICE_TURNS_H_
#define SFMAMBA_SERVER_BATCHING_DEVICE_TURNS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "server/batching/client_turns.h"
#include "server/shares/priority.h"

namespace sfmamba::batching {

// Shares one device among the queues that use the device. A turn is the right
// to run one batch on the device. At most `at_once` turns exist at a time.
// ClientTurns decides which queue gets the next turn.
//
// Thread-safe. Must outlive its members, and a member must outlive its turns. A
// thread that holds mu_ must not lock another mutex.
class DeviceTurns {
 public:
  using Clock = std::function<absl::Time()>;

  // The right to run one batch. The destructor ends the turn.
  class Turn {
   public:
    Turn(Turn&& other);
    Turn& operator=(Turn&&) = delete;
    ~Turn();

    // Ends a turn in which no batch ran. Nothing is charged.
    void Return();

   private:
    friend class DeviceTurns;
    Turn(DeviceTurns* turns, BatchCharge charge, absl::Time start)
        : turns_(turns), charge_(std::move(charge)), start_(start) {}

    DeviceTurns* turns_;  // Null once the turn has ended.
    BatchCharge charge_;  // Empty if the queue charges its batches itself.
    absl::Time start_;
  };

  // A queue that uses the device, or code that runs batches without a queue.
  class Member {
   public:
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    const QueueId& queue() const { return queue_; }

    // Returns a turn for the queue's images. Returns nullopt if no turn is
    // available or images of other queues go first. Ends `last`, the member's
    // previous turn, under the same lock. If the caller ended `last` before
    // this call, the free turn would be granted to a waiting member at once,
    // even if this member's images should go first.
    std::optional<Turn> TryTake(std::optional<Turn> last = std::nullopt);
    // Waits for a turn for the queue's images and returns the turn.
    Turn Take();
    // Waits for a turn for a batch that belongs to no queue. `cost` is the
    // expected duration of the batch. The duration is charged to an artificial
    // client, not to a client of the server. All members with the same model
    // share one artificial client for their batches without a queue.
    Turn Take(server::Priority priority, absl::Duration cost);

    // Calls `use` with the ClientTurns while the mutex is locked. Returns the
    // result of `use`.
    template <typename Use>
    auto With(Use use) const {
      absl::MutexLock lock(&turns_.mu_);
      return use(turns_.clients_);
    }

   private:
    friend class DeviceTurns;
    Member(DeviceTurns* turns, const QueueId& queue)
        : turns_(*turns), queue_(queue) {}

    DeviceTurns& turns_;
    const QueueId queue_;
  };

  explicit DeviceTurns(int at_once, Clock clock = base::SteadyNow);
  ~DeviceTurns();

  // Adds a queue to the device. Members with the same `model`, for example the
  // versions of one model, count as one model when a client's time is divided.
  // A member with an empty `model` counts as a separate model.
  std::unique_ptr<Member> Join(const std::string& model = "")
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of Take() calls that wait.
  int waiting() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Waiter {
    QueueId queue;
    bool granted = false;
    absl::CondVar woken;
  };

  // Returns the queues of the waiting members.
  std::vector<QueueId> Queues() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits until a turn is granted to the queue.
  void Wait(const QueueId& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Grants turns to waiting members while fewer than at_once_ turns exist.
  void Grant() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the turn of a batch that took `took`. The caller must call Grant()
  // afterwards.
  void End(const BatchCharge& charge, absl::Duration took)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAndGrant(const BatchCharge& charge, absl::Duration took)
      ABSL_LOCKS_EXCLUDED(mu_);

  const int at_once_;
  const Clock clock_;
  mutable absl::Mutex mu_;
  ClientTurns clients_ ABSL_GUARDED_BY(mu_);
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(mu_);
  int taken_ ABSL_GUARDED_BY(mu_) = 0;
  // Maps the name of each model to the number that identifies the model.
  std::map<std::string, int> models_ ABSL_GUARDED_BY(mu_);
  // The last number that was given to a model or queue.
  int numbers_ ABSL_GUARDED_BY(mu_) = 0;
};

// The devices of this process, which all models share.
//
// Thread-safe. The object must outlive all members of the devices.
class Devices {
 public:
  // Returns the device called `name`, such as "cpu" or "cuda:0". In the first
  // call for a device, `at_once` sets the maximum number of the device's
  // concurrent turns. Later calls ignore `at_once`.
  DeviceTurns& Get(const std::string& name, int at_once)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::map<std::string, std::unique_ptr<DeviceTurns>> devices_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_DEVICE_TURNS_H_
