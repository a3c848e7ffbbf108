#ifndef SFMAMBA_SERVER_BATCHING_RESERVATION_H_
#define SFMAMBA_SERVER_BATCHING_RESERVATION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/client_shares.h"

namespace sfmamba::batching {

// Room for some images and bytes. Release() or the destructor gives it back. It
// may outlive the QueueRoom that it came from.
//
// Thread-compatible.
class Reservation {
 public:
  Reservation() = default;  // Holds nothing.
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { Release(); }

  // Moves `items` and `bytes` from this reservation, which must hold at least
  // as many, into the returned one. So each image of a request gets its own.
  Reservation Split(int items, int64_t bytes);

  void Release();
  bool empty() const { return taken_ == nullptr; }
  int items() const { return items_; }
  int64_t bytes() const { return bytes_; }
  // About how many of the room's images are done until all of this one's client
  // are, if the clients take equal turns. Without a client, all.
  int64_t TurnsAhead() const;

 private:
  friend class QueueRoom;
  struct Taken {
    absl::Mutex mu;
    int64_t items ABSL_GUARDED_BY(mu) = 0;
    int64_t bytes ABSL_GUARDED_BY(mu) = 0;
  };

  Reservation(std::shared_ptr<Taken> taken, server::ClientShares::Hold client,
              int items, int64_t bytes);

  std::shared_ptr<Taken> taken_;  // Null if this holds nothing.
  server::ClientShares::Hold client_;
  int items_ = 0;
  int64_t bytes_ = 0;
};

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
  // `retry_after` is what a refused client is told to wait. `name` says in
  // errors which queue it is. `client_share` is the part of the items that a
  // client alone may fill; see ClientShares.
  QueueRoom(QueueLimits limits, absl::Duration retry_after,
            std::string name = "batch", double client_share = 1);

  // RESOURCE_EXHAUSTED with reason QUEUE_FULL unless both fit, or CLIENT_QUOTA
  // if that were more items than the client's share. An empty `client` has no
  // limit.
  absl::StatusOr<Reservation> Take(int items, int64_t bytes,
                                   absl::string_view client = "");

  QueueLimits limits() const;
  // From now on. What has been taken beyond them stays.
  void SetLimits(const QueueLimits& limits);

  // The items that the client has taken, and who may take how many.
  const server::ClientShares& clients() const { return clients_; }
  int64_t items() const;  // That are taken.

 private:
  const absl::Duration retry_after_;
  const std::string name_;
  server::ClientShares clients_;
  const std::shared_ptr<Reservation::Taken> taken_;
  QueueLimits limits_ ABSL_GUARDED_BY(taken_->mu);
};

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_RESERVATION_H_
