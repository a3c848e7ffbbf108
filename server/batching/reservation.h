#ifndef SFMAMBA_SERVER_BATCHING_RESERVATION_H_
#define SFMAMBA_SERVER_BATCHING_RESERVATION_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/shares/client_shares.h"
#include "server/shares/hold.h"

namespace sfmamba::batching {

class QueueRoom;

// Room for some images and bytes in a queue, which outlives it.
using Reservation = server::Hold<QueueRoom>;

// How much may wait.
struct QueueLimits {
  int64_t items = 0;
  int64_t bytes = 0;
};

// Counts the images of a queue, including those still to be decoded, and
// refuses more than fit.
//
// Thread-safe.
class QueueRoom {
 public:
  // What a reservation holds.
  struct Part {
    std::string client;  // Empty: no limit applies.
    int items = 0;
    int64_t bytes = 0;

    Part Split(int some_items, int64_t some_bytes);
  };

  // `name` says in errors which queue it is. `client_share` is the part of the
  // items and of the bytes that a client alone may fill; see ClientShares.
  explicit QueueRoom(QueueLimits limits, std::string name = "batch",
                     double client_share = 1);

  // RESOURCE_EXHAUSTED with reason QUEUE_FULL unless both fit, or CLIENT_QUOTA
  // if that were more than the client's share. An empty `client` has no
  // limit.
  absl::StatusOr<Reservation> Take(int items, int64_t bytes,
                                   absl::string_view client = "");

  QueueLimits limits() const;
  // The most bytes that a request of the client may ever take.
  int64_t most_bytes(absl::string_view client) const;
  // From now on. What has been taken beyond them stays.
  void SetLimits(const QueueLimits& limits);

  // The items that the client has taken, and who may take how many.
  const server::ClientShares& clients() const { return clients_; }
  int64_t items() const;  // That are taken.

 private:
  friend Reservation;
  void GiveBack(const Part& part);

  const std::string name_;
  server::ClientShares clients_;  // Shares of the items.
  server::ClientShares client_bytes_;
  mutable absl::Mutex mu_;
  QueueLimits taken_ ABSL_GUARDED_BY(mu_);
  QueueLimits limits_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_RESERVATION_H_
