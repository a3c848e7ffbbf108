#include "server/batching/reservation.h"

#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/reasons.h"

namespace sfmamba::batching {

Reservation::Reservation(std::shared_ptr<Taken> taken, int items, int64_t bytes)
    : taken_(std::move(taken)), items_(items), bytes_(bytes) {}

Reservation::Reservation(Reservation&& other) noexcept
    : taken_(std::move(other.taken_)),
      items_(std::exchange(other.items_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    taken_ = std::move(other.taken_);
    items_ = std::exchange(other.items_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Reservation Reservation::Split(int items, int64_t bytes) {
  assert(items <= items_ && bytes <= bytes_);
  items_ -= items;
  bytes_ -= bytes;
  return Reservation(taken_, items, bytes);
}

void Reservation::Release() {
  if (taken_ == nullptr) return;
  {
    absl::MutexLock lock(&taken_->mu);
    taken_->items -= items_;
    taken_->bytes -= bytes_;
  }
  taken_ = nullptr;
  items_ = 0;
  bytes_ = 0;
}

QueueRoom::QueueRoom(int64_t max_items, int64_t max_bytes,
                     absl::Duration retry_after, std::string name)
    : max_items_(max_items),
      max_bytes_(max_bytes),
      retry_after_(retry_after),
      name_(std::move(name)),
      taken_(std::make_shared<Reservation::Taken>()) {}

int64_t QueueRoom::items() const {
  absl::MutexLock lock(&taken_->mu);
  return taken_->items;
}

absl::StatusOr<Reservation> QueueRoom::Take(int items, int64_t bytes) {
  absl::MutexLock lock(&taken_->mu);
  // Written so that no sum can overflow.
  if (items > max_items_ - taken_->items ||
      bytes > max_bytes_ - taken_->bytes) {
    return server::QueueFull(
        name_,
        absl::StrCat("the ", name_, " queue holds ", taken_->items,
                     " of at most ", max_items_, " images and ", taken_->bytes,
                     " of at most ", max_bytes_, " bytes; no room for ", items,
                     " images of ", bytes, " bytes"),
        retry_after_);
  }
  taken_->items += items;
  taken_->bytes += bytes;
  return Reservation(taken_, items, bytes);
}

}  // namespace sfmamba::batching
