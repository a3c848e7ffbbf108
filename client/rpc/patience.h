#ifndef SFMAMBA_CLIENT_RPC_PATIENCE_H_
#define SFMAMBA_CLIENT_RPC_PATIENCE_H_

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace sfmamba::client {

// Decides how long to retry while a server drains, loads or cannot be reached.
// If the server has answered before, retries end after kLimit without an
// answer. If it has never answered, they end after `attempts` attempts.
//
// Does not read a clock. Not thread-safe.
class Patience {
 public:
  static constexpr absl::Duration kLimit = absl::Minutes(2);

  explicit Patience(int attempts) : attempts_left_(attempts) {}

  // Reports that a picture was answered.
  void Answered();

  // Reports that an attempt failed with `error` at `now`. Returns how long to
  // wait before the next attempt, or nullopt if there should be no other
  // attempt.
  absl::optional<absl::Duration> DelayAfter(const absl::Status& error,
                                            absl::Time now);

 private:
  int attempts_left_;
  bool has_answered_ = false;
  // The time of the first failure after the last answer.
  absl::optional<absl::Time> away_since_;
  absl::Duration backoff_;
  absl::BitGen random_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_PATIENCE_H_
