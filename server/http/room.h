#ifndef SFMAMBA_SERVER_HTTP_ROOM_H_
#define SFMAMBA_SERVER_HTTP_ROOM_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/shares/client_shares.h"
#include "server/shares/hold.h"

namespace sfmamba::http {

// Limits the memory of request bodies and responses to a capacity in bytes. A
// single client may take only a part of the capacity. Thread-safe.
class Room {
 public:
  using Hold = server::Hold<Room>;
  // The number of bytes that one hold reserves, and the client that uses them.
  struct Part {
    std::string client;
    int64_t bytes = 0;
    int64_t shared =
        0;  // The part of `bytes` that counts towards the client's share.
  };

  // `capacity` is in bytes. See server::ClientShares for `client_share`.
  Room(int64_t capacity, double client_share)
      : capacity_(capacity), clients_(client_share) {}

  // Returns a hold that reserves 0 bytes for `client`. Its method Resize() may
  // only enlarge the reservation. Resize() returns false and changes nothing if
  // the capacity or the client's share would be exceeded.
  Hold MakeHold(absl::string_view client);
  // Returns a hold that reserves `bytes` bytes, even if the capacity is
  // exceeded. The bytes do not count towards any client's share.
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
