#ifndef SFMAMBA_SERVER_RPC_PORT_CHANNELZ_H_
#define SFMAMBA_SERVER_RPC_PORT_CHANNELZ_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace sfmamba::rpc {

// Reads what gRPC counts of the calls of its servers' connections, also of
// those that it has handed to no method yet. Thread-compatible.
class Channelz {
 public:
  // Calls of a connection since it began.
  struct Calls {
    int64_t begun = 0;
    int64_t answered = 0;
    int64_t failed = 0;  // Ended by the client or with the connection.

    // gRPC reads the counts one after the other while calls begin and end.
    int64_t open() const {
      return std::max<int64_t>(begun - answered - failed, 0);
    }
  };

  // All connections are listed again at most once in `interval`, for one that
  // is not found.
  explicit Channelz(absl::Duration interval) : interval_(interval) {}

  // Returns the number of the newest connection from `peer`, as gRPC names it;
  // 0 if it is not found.
  int64_t IdOf(const std::string& peer);

  // Returns zeros for a connection that is gone.
  static Calls CallsOf(int64_t id);

 private:
  // Reads the numbers that are not in ids_, so that each connection of a crowd
  // is read once.
  void ReadNewIds();

  const absl::Duration interval_;
  absl::Time listed_ = absl::InfinitePast();
  // Numbers of connections by their peer, and each server's next one.
  absl::flat_hash_map<std::string, int64_t> ids_;
  absl::flat_hash_map<int64_t, int64_t> next_ids_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_CHANNELZ_H_
