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
// both are not answered. But a client that keeps to HTTP/2 never has more than
// `Limits::open` calls open, while those of a flood pile up. And an unanswered
// call costs what ending it takes: in a second a connection may begin as many
// as the server can afford, and `kPerAnswered` more for each that is answered.
//
// Thread-compatible; it is told the time.
class CallFloods {
 public:
  // Calls that may stay unanswered for each answered one.
  static constexpr int kPerAnswered = 4;
  // Connections of an address may do together what this many may.
  static constexpr int kAddressShare = 8;

  // Of one connection.
  struct Limits {
    // HTTP/2's limit of concurrent calls. As many more may have been reset and
    // wait for their turn to end.
    int64_t open = 0;
    // Calls begun in a second that may stay unanswered.
    int64_t unanswered = 0;
  };

  // What a connection, or all of an address, did in this second.
  struct Second {
    int64_t excess = 0;  // A connection's open calls beyond Limits::open.
    int64_t answered = 0;
    int64_t unanswered = 0;

    // Whether it is more than `share` of what one connection may do.
    bool Exceeds(const Limits& limits, double share) const {
      return excess > share * limits.open ||
             unanswered > share * limits.unanswered + kPerAnswered * answered;
    }
  };
  struct Seconds {
    Second connection;
    Second address;
  };

  // A connection by the descriptor `fd` is new.
  void Begin(int fd, absl::Time now) { connections_[fd] = {now}; }

  // `calls` of the connection from the address `client`, all since it began.
  Seconds Count(int fd, absl::string_view client, const Channelz::Calls& calls,
                const Limits& limits, absl::Time now);

 private:
  struct Connection {
    absl::Time second = absl::InfinitePast();
    Channelz::Calls before;  // The calls when `second` began.
    Channelz::Calls last;    // The calls at the last count.
  };

  absl::flat_hash_map<int, Connection> connections_;  // By descriptor.
  // By address, since second_.
  absl::flat_hash_map<std::string, Second> addresses_;
  absl::Time second_ = absl::InfinitePast();
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_CALL_FLOODS_H_
