#ifndef SFMAMBA_TESTS_E2E_ATTACKS_ROUNDS_H_
#define SFMAMBA_TESTS_E2E_ATTACKS_ROUNDS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "tests/e2e/server_process.h"

namespace sfmamba {

// The settings of an attack that is repeated five times.
struct Rounds {
  // Limits the server's memory (RSS) to 1.1 times this number of bytes. Set it
  // to the server's --memory_budget_bytes, or higher if large models are
  // loaded.
  int64_t memory_budget = int64_t{1536} << 20;
  absl::Duration round = absl::Seconds(3);
  // The address that the polite caller uses, see Victim. If empty, the caller
  // uses the server's address.
  std::string address;
  std::string model = "tiny";
  absl::Duration interval = absl::Milliseconds(50);
};

// Calls `attack` five times. The argument of `attack` is the time, by
// SteadyNow(), until which the attack must last. During and after the attacks,
// a polite caller must get at least 95 % of the answers that it got before. The
// server's memory may exceed `rounds.memory_budget` by at most a tenth. SIGTERM
// must end the server. `server` must be started with --drain_delay=0s.
void ExpectFiveRoundsHarmless(const Rounds& rounds, ServerProcess* server,
                              const std::function<void(absl::Time)>& attack);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ATTACKS_ROUNDS_H_
