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

// A real server with a small model of each task, and callers that ask it at
// random.
class RandomCallsTest : public testing::Test {
 protected:
  static constexpr int kCallers = 6;
  static constexpr int kCalls = 200;  // By each caller, one after the other.

  RandomCallsTest();
  void SetUp() override { ASSERT_TRUE(server_->WaitUntilServing()); }

  // Values of the API's fields, most of them valid.
  RandomMessages::Words Words() const;

  // Runs a thread for each of the callers, with a seed of its own, and waits
  // for their end. --gtest_shuffle --gtest_random_seed=n makes other seeds.
  void RunCallers(const std::function<void(int seed)>& caller);

  // Expects that nothing is held or queued any more, that no gauge is below
  // zero, and that the server ends when it is told to.
  void ExpectUnharmed();

  const TimeLimit limit_{"the end of the test", kTestPatience};
  std::unique_ptr<ServerProcess> server_;

 private:
  double Sum(const std::string& name);
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_CALLS_H_
