#include "server/rpc/port/call_floods.h"

namespace sfmamba::rpc {
namespace {

// Returns what came by a connection since `before`.
CallFloods::Second Since(const CallFloods::Traffic& before,
                         const CallFloods::Traffic& traffic) {
  CallFloods::Second second;
  second.answered = traffic.calls.answered - before.calls.answered;
  second.unanswered =
      traffic.calls.begun - before.calls.begun - second.answered;
  second.bytes = traffic.bytes - before.bytes;
  return second;
}

}  // namespace

CallFloods::Seconds CallFloods::Count(int fd, absl::string_view client,
                                      const Traffic& traffic, absl::Time now) {
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
  const Second more = Since(connection.last, traffic);
  Second& address = addresses_[client];
  address.answered += part * more.answered;
  address.unanswered += part * more.unanswered;
  address.bytes += part * more.bytes;
  connection.last = traffic;
  connection.counted = now;
  if (now - connection.second > absl::Seconds(1)) {
    connection.second = now;
    connection.before = traffic;
  }
  return {Since(connection.before, traffic), address};
}

}  // namespace sfmamba::rpc
