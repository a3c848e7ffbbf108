#ifndef SFMAMBA_SERVER_HTTP_ROOM_H_
#define SFMAMBA_SERVER_HTTP_ROOM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace sfmamba::http {

// Counts bytes of memory against a capacity. Thread-safe.
class Room {
 public:
  // What is taken; its end gives it back. Thread-compatible.
  class Hold {
   public:
    Hold() = default;  // Holds nothing.
    explicit Hold(std::shared_ptr<Room> room) : room_(std::move(room)) {}
    Hold(Hold&& other) noexcept { *this = std::move(other); }
    Hold& operator=(Hold&& other) noexcept {
      std::swap(room_, other.room_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Hold() { Release(); }

    // Takes `bytes` more; false, and nothing is taken, if there is no room.
    bool Take(int64_t bytes) {
      if (room_->held_.fetch_add(bytes) + bytes > room_->capacity_) {
        room_->held_.fetch_sub(bytes);
        return false;
      }
      bytes_ += bytes;
      return true;
    }
    // The same whether there is room or not.
    void TakeAnyway(int64_t bytes) {
      room_->held_.fetch_add(bytes);
      bytes_ += bytes;
    }
    void Release() {
      if (bytes_ > 0) room_->held_.fetch_sub(std::exchange(bytes_, 0));
    }
    int64_t bytes() const { return bytes_; }

   private:
    std::shared_ptr<Room> room_;
    int64_t bytes_ = 0;
  };

  explicit Room(int64_t capacity) : capacity_(capacity) {}

  int64_t held() const { return held_.load(); }
  int64_t capacity() const { return capacity_; }

 private:
  const int64_t capacity_;
  std::atomic<int64_t> held_{0};
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_ROOM_H_
