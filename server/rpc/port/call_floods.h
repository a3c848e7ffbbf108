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
// a second a connection may begin as many of them as the server can afford, and
// `kPerAnswered` more for each call that is answered: a flood gets no answers.
//
// Thread-compatible; it is told the time.
class CallFloods {
 public:
  // Calls that may stay unanswered for each answered one.
  static constexpr int kPerAnswered = 4;
  // Connections of an address may do together what this many may.
  static constexpr int kAddressShare = 8;

  // Calls of a connection, or of all of an address, that were begun in this
  // second.
  struct Second {
    int64_t answered = 0;
    int64_t unanswered = 0;

    // Whether they are a flood where `most` may stay unanswered anyway.
    bool Exceeds(int64_t most) const {
      return unanswered > most + kPerAnswered * answered;
    }
  };
  struct Seconds {
    Second connection;
    Second address;
  };

  // A connection by the descriptor `fd` is new: Count() comes later.
  void Begin(int fd, absl::Time now) { connections_[fd] = {now, now}; }

  // `calls` of the connection from the address `client`, all since it began.
  Seconds Count(int fd, absl::string_view client, const Channelz::Calls& calls,
                absl::Time now);

 private:
  struct Connection {
    absl::Time second = absl::InfinitePast();
    absl::Time counted = absl::InfinitePast();
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
