#include "server/batching/reservation.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"

namespace sfmamba::batching {

Reservation::Reservation(std::shared_ptr<Taken> taken,
                         server::ClientShares::Hold client, int items,
                         int64_t bytes)
    : taken_(std::move(taken)),
      client_(std::move(client)),
      items_(items),
      bytes_(bytes) {}

Reservation::Reservation(Reservation&& other) noexcept
    : taken_(std::move(other.taken_)),
      client_(std::move(other.client_)),
      items_(std::exchange(other.items_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    taken_ = std::move(other.taken_);
    client_ = std::move(other.client_);
    items_ = std::exchange(other.items_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Reservation Reservation::Split(int items, int64_t bytes) {
  assert(items <= items_ && bytes <= bytes_);
  items_ -= items;
  bytes_ -= bytes;
  return Reservation(taken_, client_.Split(items), items, bytes);
}

int64_t Reservation::TurnsAhead() const {
  if (taken_ == nullptr) return 0;
  int64_t all = 0;
  {
    absl::MutexLock lock(&taken_->mu);
    all = taken_->items;
  }
  return client_.empty() ? all : std::min(all, client_.InEqualTurns());
}

void Reservation::Release() {
  if (taken_ == nullptr) return;
  client_.Release();
  {
    absl::MutexLock lock(&taken_->mu);
    taken_->items -= items_;
    taken_->bytes -= bytes_;
  }
  taken_ = nullptr;
  items_ = 0;
  bytes_ = 0;
}

QueueRoom::QueueRoom(QueueLimits limits, absl::Duration retry_after,
                     std::string name, double client_share)
    : retry_after_(retry_after),
      name_(std::move(name)),
      clients_(client_share),
      taken_(std::make_shared<Reservation::Taken>()),
      limits_(limits) {}

QueueLimits QueueRoom::limits() const {
  absl::MutexLock lock(&taken_->mu);
  return limits_;
}

void QueueRoom::SetLimits(const QueueLimits& limits) {
  absl::MutexLock lock(&taken_->mu);
  limits_ = limits;
}

int64_t QueueRoom::items() const {
  absl::MutexLock lock(&taken_->mu);
  return taken_->items;
}

absl::StatusOr<Reservation> QueueRoom::Take(int items, int64_t bytes,
                                            absl::string_view client) {
  absl::MutexLock lock(&taken_->mu);
  // Written so that no sum can overflow.
  if (items > limits_.items - taken_->items ||
      bytes > limits_.bytes - taken_->bytes) {
    return server::QueueFull(
        name_,
        absl::StrCat("the ", name_, " queue holds ", taken_->items,
                     " of at most ", limits_.items, " images and ",
                     taken_->bytes, " of at most ", limits_.bytes,
                     " bytes; no room for ", items, " images of ", bytes,
                     " bytes"),
        retry_after_);
  }
  std::optional<server::ClientShares::Hold> share;
  if (client.empty()) {
    share.emplace();
  } else {
    share = clients_.Take(client, items, limits_.items - taken_->items);
  }
  if (!share.has_value()) {
    return server::ClientQuota(
        client, absl::StrCat("the places of the ", name_, " queue"),
        retry_after_);
  }
  taken_->items += items;
  taken_->bytes += bytes;
  return Reservation(taken_, *std::move(share), items, bytes);
}

}  // namespace sfmamba::batching
