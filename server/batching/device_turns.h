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

// Shares one device among the queues that use it: at most `at_once` turns are
// taken at a time, and ClientTurns decides whose is next.
//
// Thread-safe. It must outlive its members, and a member its turns. Its mutex
// is the last that a thread locks.
class DeviceTurns {
 public:
  using Clock = std::function<absl::Time()>;

  // The right to run one batch. Ends with the object.
  class Turn {
   public:
    Turn(Turn&& other);
    Turn& operator=(Turn&&) = delete;
    ~Turn();

    // Ends the turn and charges nothing: nothing was run.
    void Return();

   private:
    friend class DeviceTurns;
    Turn(DeviceTurns* turns, BatchCharge charge, absl::Time start)
        : turns_(turns), charge_(std::move(charge)), start_(start) {}

    DeviceTurns* turns_;  // Null once the turn has ended.
    BatchCharge charge_;  // Without parts if the queue charges its batches.
    absl::Time start_;
  };

  // A queue on the device, or what runs batches without one.
  class Member {
   public:
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    const QueueId& queue() const { return queue_; }

    // Returns a turn for the queue's images, or none if these must wait for
    // others. Ends `last`, of the batch before it: without that a member that
    // has only just ended its turn would always come after those who wait.
    std::optional<Turn> TryTake(std::optional<Turn> last = std::nullopt);
    // Waits for a turn for the queue's images.
    Turn Take();
    // Waits for a turn for a batch outside of queues, which will take `cost`.
    // It is charged to a client of its own.
    Turn Take(server::Priority priority, absl::Duration cost);

    // Returns what `use` returns, which is called with the clients' turns.
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

  // Versions of one model share what a client gets of the device for it. An
  // empty `model` is another one each time.
  std::unique_ptr<Member> Join(const std::string& model = "")
      ABSL_LOCKS_EXCLUDED(mu_);

  // How many calls of Take() wait.
  int waiting() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Waiter {
    QueueId queue;
    bool granted = false;
    absl::CondVar woken;
  };

  // The queues of those who wait.
  std::vector<QueueId> Queues() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits until a turn is granted to the queue.
  void Wait(const QueueId& queue) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives free turns to those who wait.
  void Grant() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the turn, of a batch that took `took`. Grant() must follow.
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
  std::map<std::string, int> models_ ABSL_GUARDED_BY(mu_);  // Their numbers.
  int numbers_ ABSL_GUARDED_BY(mu_) = 0;  // Models and queues so far.
};

// The devices of this process, which its models share.
//
// Thread-safe. Must outlive its devices' members.
class Devices {
 public:
  // Returns the device of that name, such as "cpu" or "cuda:0". Who asks for it
  // first says how many turns of it may be taken at once.
  DeviceTurns& Get(const std::string& name, int at_once)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::map<std::string, std::unique_ptr<DeviceTurns>> devices_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_DEVICE_TURNS_H_
