#include "server/http/room.h"

#include <utility>

namespace sfmamba::http {

Room::Hold::Hold(std::shared_ptr<Room> room, absl::string_view peer)
    : room_(std::move(room)), client_(server::ClientOf(peer)) {}

Room::Hold& Room::Hold::operator=(Hold&& other) noexcept {
  std::swap(room_, other.room_);
  std::swap(client_, other.client_);
  std::swap(bytes_, other.bytes_);
  std::swap(shared_, other.shared_);
  return *this;
}

bool Room::Hold::Take(int64_t bytes) {
  const int64_t free = room_->capacity_ - room_->held_.fetch_add(bytes);
  if (bytes > free || !room_->clients_.Take(client_, bytes, free - bytes)) {
    room_->held_.fetch_sub(bytes);
    return false;
  }
  bytes_ += bytes;
  shared_ += bytes;
  return true;
}

void Room::Hold::TakeAnyway(int64_t bytes) {
  room_->held_.fetch_add(bytes);
  bytes_ += bytes;
}

void Room::Hold::Release() {
  if (bytes_ == 0) return;
  room_->held_.fetch_sub(std::exchange(bytes_, 0));
  room_->clients_.GiveBack(client_, std::exchange(shared_, 0));
}

}  // namespace sfmamba::http
