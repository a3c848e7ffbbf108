#ifndef SFMAMBA_SERVER_RPC_PORT_PORT_CHECK_H_
#define SFMAMBA_SERVER_RPC_PORT_PORT_CHECK_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sfmamba::rpc {

// Opens a connection to `address`, "host:port", says hello as a client of
// HTTP/2 does, by TLS or in clear, and hangs up at the first byte of the
// answer. No certificate is needed or checked. UNAVAILABLE if none comes within
// `limit`.
absl::Status CallPort(const std::string& address, bool tls,
                      absl::Duration limit);

// Notices that a port is deaf: that it takes no new connections while the old
// ones are served. Thread-compatible.
class PortCheck {
 public:
  // Failures one after the other until the port counts as deaf.
  static constexpr int kFailures = 3;

  // `call` is CallPort(); `deaf` is called once, when the port counts as deaf.
  PortCheck(std::function<absl::Status()> call,
            std::function<void(const absl::Status&)> deaf)
      : call_(std::move(call)), deaf_(std::move(deaf)) {}

  // To be called now and then.
  void Run();

 private:
  const std::function<absl::Status()> call_;
  const std::function<void(const absl::Status&)> deaf_;
  int failed_ = 0;  // In a row.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_PORT_CHECK_H_
