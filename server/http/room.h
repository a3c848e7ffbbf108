#ifndef SFMAMBA_SERVER_HTTP_ROOM_H_
#define SFMAMBA_SERVER_HTTP_ROOM_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/shares/client_shares.h"
#include "server/shares/hold.h"

namespace sfmamba::http {

// Counts bytes of memory against a capacity, of which a client alone may take a
// part. Thread-safe.
class Room {
 public:
  using Hold = server::Hold<Room>;
  // A client's part of the room.
  struct Part {
    std::string client;
    int64_t bytes = 0;
    int64_t shared = 0;  // Those of `bytes` that count for the client.
  };

  // `client_share`: see server::ClientShares.
  Room(int64_t capacity, double client_share)
      : capacity_(capacity), clients_(client_share) {}

  // Returns an empty hold for `client`. Its Resize() takes at least as many
  // bytes as before. It returns false, and takes nothing, if the client has no
  // room for them.
  Hold MakeHold(absl::string_view client);
  // Takes `bytes` whether there is room or not.
  Hold TakeAnyway(int64_t bytes);
  int64_t held() const { return held_.load(); }

 private:
  friend Hold;

  bool Resize(int64_t bytes, Part* part);
  void GiveBack(const Part& part);

  const int64_t capacity_;
  server::ClientShares clients_;
  std::atomic<int64_t> held_{0};
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_ROOM_H_
