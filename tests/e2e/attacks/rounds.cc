#include "tests/e2e/attacks/rounds.h"

#include <signal.h>

#include <cstdio>

#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/e2e/victim.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int kRounds = 5;
constexpr int64_t kMiB = 1 << 20;

// Returns the fraction of a polite caller's requests that are answered while
// `during` runs.
double PartAnswered(const Rounds& rounds, const ServerProcess& server,
                    const char* when, const std::function<void()>& during) {
  Victim victim(rounds.address.empty() ? server.address() : rounds.address,
                rounds.interval, rounds.model);
  during();
  const Victim::Count count = victim.Stop();
  std::printf("%s: %d of %d answered, RSS %ld MiB%s%s\n", when, count.answered,
              count.sent, static_cast<long>(server.resident_bytes() / kMiB),
              count.first_error.empty() ? "" : ", error ",
              count.first_error.c_str());
  return static_cast<double>(count.answered) / count.sent;
}

}  // namespace

void ExpectFiveRoundsHarmless(const Rounds& rounds, ServerProcess* server,
                              const std::function<void(absl::Time)>& attack) {
  const auto wait = [&] { absl::SleepFor(rounds.round); };
  const double before = PartAnswered(rounds, *server, "before", wait);
  EXPECT_GT(before, 0);
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_GE(PartAnswered(rounds, *server, "attacked",
                           [&] { attack(base::SteadyNow() + rounds.round); }),
              0.95 * before)
        << "round " << i;
  }
  EXPECT_GE(PartAnswered(rounds, *server, "afterwards", wait), 0.95 * before);
  const int64_t peak = server->peak_resident_bytes();
  std::printf("at most %ld MiB\n", static_cast<long>(peak / kMiB));
  EXPECT_LT(peak, rounds.memory_budget / 10 * 11);
  server->Signal(SIGTERM);
  TimeLimit limit("the server's end");
  EXPECT_EQ(server->Wait(), 0);
}

}  // namespace sfmamba
