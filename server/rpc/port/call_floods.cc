#include "server/rpc/port/call_floods.h"

namespace sfmamba::rpc {
namespace {

// Returns the calls of a connection that came since `before`.
CallFloods::Second Since(const Channelz::Calls& before,
                         const Channelz::Calls& calls) {
  CallFloods::Second second;
  second.answered = calls.answered - before.answered;
  second.unanswered = calls.begun - before.begun - second.answered;
  return second;
}

}  // namespace

CallFloods::Seconds CallFloods::Count(int fd, absl::string_view client,
                                      const Channelz::Calls& calls,
                                      absl::Time now) {
  if (now - second_ > absl::Seconds(1)) {
    second_ = now;
    addresses_.clear();
  }
  Connection& connection = connections_[fd];
  // What came since the last count came evenly: a part of it in this second.
  const double part =
      connection.counted >= second_
          ? 1
          : absl::FDivDuration(now - second_, now - connection.counted);
  const Second more = Since(connection.last, calls);
  Second& address = addresses_[client];
  address.answered += part * more.answered;
  address.unanswered += part * more.unanswered;
  connection.last = calls;
  connection.counted = now;
  if (now - connection.second > absl::Seconds(1)) {
    connection.second = now;
    connection.before = calls;
  }
  return {Since(connection.before, calls), address};
}

}  // namespace sfmamba::rpc
