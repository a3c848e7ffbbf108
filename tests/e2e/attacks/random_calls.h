#ifndef SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_CALLS_H_
#define SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_CALLS_H_

#include <functional>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "tests/e2e/attacks/random_messages.h"
#include "tests/e2e/server_process.h"
#include "tests/testing/patience.h"

namespace sfmamba {

// A real server with a small model for each task, and callers with random
// requests.
class RandomCallsTest : public testing::Test {
 protected:
  static constexpr int kCallers = 6;
  static constexpr int kCalls = 200;  // By each caller, in sequence.

  RandomCallsTest();
  void SetUp() override { ASSERT_TRUE(server_->WaitUntilServing()); }

  // Values for fields of the API, most of them valid.
  RandomMessages::Words Words() const;

  // Runs a thread for each caller, with its own seed, and waits until all end.
  // --gtest_shuffle --gtest_random_seed=n selects other seeds.
  void RunCallers(const std::function<void(int seed)>& caller);

  // Expects that nothing is held or queued, that no gauge is below zero, and
  // that the server stops on request.
  void ExpectUnharmed();

  const TimeLimit limit_{"the end of the test", kTestPatience};
  std::unique_ptr<ServerProcess> server_;

 private:
  double Sum(const std::string& name);
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_CALLS_H_
