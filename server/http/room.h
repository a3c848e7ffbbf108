#ifndef SFMAMBA_SERVER_HTTP_ROOM_H_
#define SFMAMBA_SERVER_HTTP_ROOM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/shares/client_shares.h"

namespace sfmamba::http {

// Counts bytes of memory against a capacity, of which a client alone may take a
// part. Thread-safe.
class Room {
 public:
  // What is taken for a client; its end gives it back. Thread-compatible.
  class Hold {
   public:
    Hold() = default;  // Holds nothing, and can take nothing.
    // `peer`: see server::ClientOf.
    Hold(std::shared_ptr<Room> room, absl::string_view peer);
    Hold(Hold&& other) noexcept { *this = std::move(other); }
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { Release(); }

    // Takes `bytes` more; false, and nothing is taken, if there is no room for
    // the client.
    bool Take(int64_t bytes);
    // Takes `bytes` whether there is room or not, of no client's part.
    void TakeAnyway(int64_t bytes);
    void Release();
    int64_t bytes() const { return bytes_; }

   private:
    std::shared_ptr<Room> room_;
    std::string client_;
    int64_t bytes_ = 0;
    int64_t shared_ = 0;  // Those of bytes_ that count for the client.
  };

  // `client_share`: see server::ClientShares.
  Room(int64_t capacity, double client_share)
      : capacity_(capacity), clients_(client_share) {}

  int64_t held() const { return held_.load(); }

 private:
  const int64_t capacity_;
  server::ClientShares clients_;
  std::atomic<int64_t> held_{0};
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_ROOM_H_
