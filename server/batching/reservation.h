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

// Room for images and bytes in a queue. The queue must outlive it.
using Reservation = server::Hold<QueueRoom>;

// The maximum number of images and bytes that may wait.
struct QueueLimits {
  int64_t items = 0;
  int64_t bytes = 0;
};

// Counts the images of a queue, including images still to be decoded. Refuses
// images that exceed the limits.
//
// Thread-safe.
class QueueRoom {
 public:
  // The contents of a reservation.
  struct Part {
    std::string client;  // If empty, no client limit applies.
    int items = 0;
    int64_t bytes = 0;

    Part Split(int some_items, int64_t some_bytes);
  };

  // `name` identifies the queue in errors. `client_share` is the share of the
  // images and of the bytes that one client may use alone; see ClientShares.
  explicit QueueRoom(QueueLimits limits, std::string name = "batch",
                     double client_share = 1);

  // Reserves room. RESOURCE_EXHAUSTED with reason QUEUE_FULL if the images or
  // the bytes do not fit. RESOURCE_EXHAUSTED with reason CLIENT_QUOTA if they
  // exceed the client's share. An empty `client` has no such limit.
  absl::StatusOr<Reservation> Take(int items, int64_t bytes,
                                   absl::string_view client = "");

  QueueLimits limits() const;
  // The maximum bytes that one request of the client may take.
  int64_t most_bytes(absl::string_view client) const;
  // Changes the limits. Room that is already taken stays taken.
  void SetLimits(const QueueLimits& limits);

  // The images that each client has taken.
  const server::ClientShares& clients() const { return clients_; }
  int64_t items() const;  // Images that have room.

 private:
  friend Reservation;
  void GiveBack(const Part& part);

  const std::string name_;
  server::ClientShares clients_;  // Shares of the images.
  server::ClientShares client_bytes_;
  mutable absl::Mutex mu_;
  QueueLimits taken_ ABSL_GUARDED_BY(mu_);
  QueueLimits limits_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_RESERVATION_H_
