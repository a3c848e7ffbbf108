#ifndef SFMAMBA_TESTS_E2E_ATTACKS_ROUNDS_H_
#define SFMAMBA_TESTS_E2E_ATTACKS_ROUNDS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "tests/e2e/server_process.h"

namespace sfmamba {

// An attack that comes five times in a row.
struct Rounds {
  // Bytes, as the server's --memory_budget_bytes.
  int64_t memory_budget = int64_t{1536} << 20;
  absl::Duration round = absl::Seconds(3);
  // What the polite caller asks: see Victim. Empty: the server's address.
  std::string address;
  std::string model = "tiny";
  absl::Duration interval = absl::Milliseconds(50);
};

// Calls `attack`, which lasts until the time that it is given, in SteadyNow()'s
// time, five times in a row. Expects that a polite caller gets at least 95 % of
// what it got before, in the attacks and after them, that the server's memory
// stays within its budget and a tenth, and that SIGTERM ends it. `server` was
// started with --drain_delay=0s.
void ExpectFiveRoundsHarmless(const Rounds& rounds, ServerProcess* server,
                              const std::function<void(absl::Time)>& attack);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ATTACKS_ROUNDS_H_
