#ifndef SFMAMBA_SERVER_RPC_PORT_CALL_FLOODS_H_
#define SFMAMBA_SERVER_RPC_PORT_CALL_FLOODS_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/port/channelz.h"

namespace sfmamba::rpc {

// Tells a flood of calls that are reset at once (CVE-2023-44487) from a client
// whose deadlines pass because the server has too much to do. Most calls of
// both are not answered, and each costs the server what ending it takes. So in
// a second a connection may begin as many of them as the server can afford,
// `kPerAnswered` more for each call that is answered, for a flood gets no
// answers, and one more for each `kBytesPerCall` that it sends, for a flood is
// many calls of few bytes, and pictures are not.
//
// Thread-compatible; it is told the time.
class CallFloods {
 public:
  // Calls that may stay unanswered for each answered one.
  static constexpr int kPerAnswered = 4;
  // To read these takes as long as to end a call: about 40 us.
  static constexpr int64_t kBytesPerCall = 32 << 10;
  // Connections of an address may do together what this many may.
  static constexpr int kAddressShare = 8;

  // Calls of a connection, or of all of an address, that were begun in this
  // second.
  struct Second {
    int64_t answered = 0;
    int64_t unanswered = 0;
    int64_t bytes = 0;  // Received of them.

    // Whether they are a flood where `most` may stay unanswered anyway.
    bool Exceeds(int64_t most) const {
      return unanswered >
             most + kPerAnswered * answered + bytes / kBytesPerCall;
    }
  };
  struct Seconds {
    Second connection;
    Second address;
  };
  // What came by a connection since it began.
  struct Traffic {
    Channelz::Calls calls;
    int64_t bytes = 0;  // Received.
  };

  // A connection by the descriptor `fd` is new: Count() comes later.
  void Begin(int fd, absl::Time now) { connections_[fd] = {now, now}; }

  // What came by the connection from the address `client`.
  Seconds Count(int fd, absl::string_view client, const Traffic& traffic,
                absl::Time now);

 private:
  struct Connection {
    absl::Time second = absl::InfinitePast();
    absl::Time counted = absl::InfinitePast();
    Traffic before;  // When `second` began.
    Traffic last;    // At the last count.
  };

  absl::flat_hash_map<int, Connection> connections_;  // By descriptor.
  // By address, since second_.
  absl::flat_hash_map<std::string, Second> addresses_;
  absl::Time second_ = absl::InfinitePast();
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_CALL_FLOODS_H_
