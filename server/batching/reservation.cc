#include "server/batching/reservation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/reasons.h"

namespace sfmamba::batching {

QueueRoom::Part QueueRoom::Part::Split(int some_items, int64_t some_bytes) {
  items -= some_items;
  bytes -= some_bytes;
  return {client, some_items, some_bytes};
}

QueueRoom::QueueRoom(QueueLimits limits, std::string name, double client_share)
    : name_(std::move(name)),
      clients_(client_share),
      client_bytes_(client_share),
      limits_(limits) {}

QueueLimits QueueRoom::limits() const {
  absl::MutexLock lock(&mu_);
  return limits_;
}

void QueueRoom::SetLimits(const QueueLimits& limits) {
  absl::MutexLock lock(&mu_);
  limits_ = limits;
}

int64_t QueueRoom::most_bytes(absl::string_view client) const {
  const int64_t all = limits().bytes;
  return client.empty() ? all : client_bytes_.MostAlone(all);
}

int64_t QueueRoom::items() const {
  absl::MutexLock lock(&mu_);
  return taken_.items;
}

absl::StatusOr<Reservation> QueueRoom::Take(int items, int64_t bytes,
                                            absl::string_view client) {
  absl::MutexLock lock(&mu_);
  // Subtracts instead of adding, because a sum could overflow.
  if (items > limits_.items - taken_.items ||
      bytes > limits_.bytes - taken_.bytes) {
    return server::QueueFull(
        name_,
        absl::StrCat("the ", name_, " queue holds ", taken_.items,
                     " of at most ", limits_.items, " images and ",
                     taken_.bytes, " of at most ", limits_.bytes,
                     " bytes; no room for ", items, " images of ", bytes,
                     " bytes"),
        server::kRetryAfter);
  }
  const auto over_share = [&](absl::string_view what) {
    return server::ClientQuota(
        client, absl::StrCat("the ", what, " of the ", name_, " queue"),
        server::kRetryAfter);
  };
  if (!client.empty()) {
    if (!clients_.Take(client, items, limits_.items - taken_.items)) {
      return over_share("places");
    }
    if (!client_bytes_.Take(client, bytes,
                            limits_.bytes - taken_.bytes - bytes)) {
      clients_.GiveBack(client, items);
      return over_share("bytes");
    }
  }
  taken_.items += items;
  taken_.bytes += bytes;
  return Reservation(this, {std::string(client), items, bytes});
}

void QueueRoom::GiveBack(const Part& part) {
  absl::MutexLock lock(&mu_);
  if (!part.client.empty()) {
    clients_.GiveBack(part.client, part.items);
    client_bytes_.GiveBack(part.client, part.bytes);
  }
  taken_.items -= part.items;
  taken_.bytes -= part.bytes;
}

}  // namespace sfmamba::batching
