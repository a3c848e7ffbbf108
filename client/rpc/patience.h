#ifndef SFMAMBA_CLIENT_RPC_PATIENCE_H_
#define SFMAMBA_CLIENT_RPC_PATIENCE_H_

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace sfmamba::client {

// Decides how long many pictures wait for a server that drains, loads or cannot
// be reached: if it has answered before, until kLimit passes without another
// answer; otherwise for `attempts` attempts.
//
// Has no clock. Not thread-safe.
class Patience {
 public:
  static constexpr absl::Duration kLimit = absl::Minutes(2);

  explicit Patience(int attempts) : attempts_left_(attempts) {}

  // A picture was answered.
  void Answered();

  // An attempt has failed with `error` at `now`. Returns how long to wait
  // before the next one; none if there is to be no other.
  absl::optional<absl::Duration> DelayAfter(const absl::Status& error,
                                            absl::Time now);

 private:
  int attempts_left_;
  bool has_answered_ = false;
  // When the first attempt since the last answer failed.
  absl::optional<absl::Time> away_since_;
  absl::Duration backoff_;
  absl::BitGen random_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_PATIENCE_H_
