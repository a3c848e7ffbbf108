#include "server/rpc/port/call_floods.h"

#include <algorithm>

namespace sfmamba::rpc {
namespace {

// Adds the calls of a connection since `before`.
void Add(const Channelz::Calls& calls, const Channelz::Calls& before,
         CallFloods::Second* second) {
  second->answered += calls.answered - before.answered;
  second->unanswered +=
      (calls.begun - calls.answered) - (before.begun - before.answered);
}

}  // namespace

CallFloods::Seconds CallFloods::Count(int fd, absl::string_view client,
                                      const Channelz::Calls& calls,
                                      const Limits& limits, absl::Time now) {
  if (now - second_ > absl::Seconds(1)) {
    second_ = now;
    addresses_.clear();
  }
  Connection& connection = connections_[fd];
  Second& address = addresses_[client];
  Add(calls, connection.last, &address);
  connection.last = calls;
  if (now - connection.second > absl::Seconds(1)) {
    connection.second = now;
    connection.before = calls;
  }
  Second second;
  second.excess = std::max<int64_t>(0, calls.open() - limits.open);
  Add(calls, connection.before, &second);
  return {second, address};
}

}  // namespace sfmamba::rpc
