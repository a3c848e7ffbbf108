#include "client/rpc/patience.h"

#include <algorithm>

#include "client/rpc/rpc_status.h"

namespace sfmamba::client {
namespace {

constexpr absl::Duration kFirstBackoff = absl::Milliseconds(50);
constexpr absl::Duration kMaxBackoff = absl::Seconds(1);

}  // namespace

void Patience::Answered() {
  has_answered_ = true;
  away_since_.reset();
  backoff_ = absl::ZeroDuration();
}

absl::optional<absl::Duration> Patience::DelayAfter(const absl::Status& error,
                                                    absl::Time now) {
  if (!MayPass(error)) return absl::nullopt;
  if (!away_since_.has_value()) away_since_ = now;
  if (has_answered_ ? now - *away_since_ > kLimit : --attempts_left_ <= 0) {
    return absl::nullopt;
  }
  backoff_ = std::clamp(4 * backoff_, kFirstBackoff, kMaxBackoff);
  const absl::Duration delay = backoff_ * absl::Uniform(random_, 0.8, 1.2);
  return std::max(delay, GetRpcErrorDetails(error).retry_delay.value_or(
                             absl::ZeroDuration()));
}

}  // namespace sfmamba::client
