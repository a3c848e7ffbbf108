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
#include "server/batching/turn_order.h"
#include "server/shares/priority.h"

namespace sfmamba::batching {

// Shares one device among the models that run on it: at most `at_once` turns
// are taken at a time. Who waits gets one in TurnOrder's order, so that a
// flooded model delays a batch of another one by at most the turns that are
// taken.
//
// Thread-safe. It must outlive its members, and a member its turns.
class DeviceTurns {
 public:
  using Clock = std::function<absl::Time()>;

  // The right to run one batch. Ends with the object, and what it took is
  // charged to the model.
  class Turn {
   public:
    Turn(Turn&& other);
    Turn& operator=(Turn&&) = delete;
    ~Turn();

    // Ends the turn and charges nothing: nothing was run.
    void Return();

   private:
    friend class DeviceTurns;
    Turn(DeviceTurns* turns, const TurnWish& wish, absl::Time start)
        : turns_(turns), wish_(wish), start_(start) {}

    DeviceTurns* turns_;  // Null once the turn has ended.
    TurnWish wish_;
    absl::Time start_;
  };

  // A version of a model on the device.
  class Member {
   public:
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // Returns a turn for a batch that will take `cost`, or none if that must
    // wait for others. Of a model's batches the one with the earlier `order_by`
    // goes first, whichever version it is of. Ends `last`, of the batch before
    // it: without that a member that has only just ended its turn would always
    // come after those who wait, so that one of short batches got as many turns
    // as the others, not as much time.
    std::optional<Turn> TryTake(server::Priority priority, absl::Duration cost,
                                absl::Time order_by = absl::InfiniteFuture(),
                                std::optional<Turn> last = std::nullopt);
    // Waits for a turn.
    Turn Take(server::Priority priority, absl::Duration cost,
              absl::Time order_by = absl::InfiniteFuture());
    // All calls of Take() that wait with a lower priority now have this one.
    void Hasten(server::Priority priority);

   private:
    friend class DeviceTurns;
    Member(DeviceTurns* turns, std::string model, int number)
        : turns_(*turns), model_(std::move(model)), number_(number) {}

    DeviceTurns& turns_;
    const std::string model_;
    const int number_;  // The model's number.
  };

  explicit DeviceTurns(int at_once, Clock clock = base::SteadyNow);
  ~DeviceTurns();

  // Versions of one model share what it gets of the device, so that what is
  // left of one that is replaced does not come after the batches of the next.
  // An empty `model` is another one each time.
  std::unique_ptr<Member> Join(const std::string& model = "")
      ABSL_LOCKS_EXCLUDED(mu_);

  // How many calls of Take() wait.
  int waiting() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Waiter {
    const Member* member = nullptr;
    TurnWish wish;
    bool granted = false;
    absl::CondVar woken;
  };

  struct Model {
    int number = 0;
    int members = 0;
  };

  TurnWish MakeWish(int model, server::Priority priority, absl::Duration cost,
                    absl::Time order_by) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The wishes of those who wait.
  std::vector<TurnWish> Wishes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives free turns to those who wait.
  void Grant() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Start(const TurnWish& wish) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Grant() must follow.
  void End(const TurnWish& wish, absl::Duration took)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAndGrant(const TurnWish& wish, absl::Duration took)
      ABSL_LOCKS_EXCLUDED(mu_);

  const int at_once_;
  const Clock clock_;
  mutable absl::Mutex mu_;
  TurnOrder order_ ABSL_GUARDED_BY(mu_);
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(mu_);
  int taken_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, Model> models_ ABSL_GUARDED_BY(mu_);  // With a name.
  int numbers_ ABSL_GUARDED_BY(mu_) = 0;  // That models have got so far.
  uint64_t arrivals_ ABSL_GUARDED_BY(mu_) = 0;
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
