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

// Reserved room in a queue for a number of images and their bytes. The
// QueueRoom must outlive the reservation.
using Reservation = server::Hold<QueueRoom>;

// Limits the number of waiting images (`items`) and the total size of these
// images (`bytes`).
struct QueueLimits {
  int64_t items = 0;
  int64_t bytes = 0;
};

// Counts the images of a queue, including images that are still being decoded.
// Refuses an image if it would exceed the limits.
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

  // `name` identifies the queue in errors. `client_share` is the fraction of
  // the images and of the bytes that a single client may use. See ClientShares.
  explicit QueueRoom(QueueLimits limits, std::string name = "batch",
                     double client_share = 1);

  // Reserves room. Returns RESOURCE_EXHAUSTED with reason QUEUE_FULL if the
  // images or the bytes do not fit, or with reason CLIENT_QUOTA if they exceed
  // the client's share. If `client` is empty, there is no limit per client.
  absl::StatusOr<Reservation> Take(int items, int64_t bytes,
                                   absl::string_view client = "");

  QueueLimits limits() const;
  // Returns the maximum number of bytes that one request of the client may
  // take.
  int64_t most_bytes(absl::string_view client) const;
  // Changes the limits. Existing reservations are not affected.
  void SetLimits(const QueueLimits& limits);

  // Returns the number of images that each client has reserved.
  const server::ClientShares& clients() const { return clients_; }
  int64_t items() const;  // Returns the number of reserved images.

 private:
  friend Reservation;
  void GiveBack(const Part& part);

  const std::string name_;
  server::ClientShares clients_;  // Counts the images of each client.
  server::ClientShares client_bytes_;
  mutable absl::Mutex mu_;
  QueueLimits taken_ ABSL_GUARDED_BY(mu_);
  QueueLimits limits_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_RESERVATION_H_
