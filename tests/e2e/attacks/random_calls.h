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

// Runs a real server with a small model for each task, and callers that send
// random requests.
class RandomCallsTest : public testing::Test {
 protected:
  static constexpr int kCallers = 6;
  // The number of calls that each caller sends, one after another.
  static constexpr int kCalls = 200;

  RandomCallsTest();
  void SetUp() override { ASSERT_TRUE(server_->WaitUntilServing()); }

  // Returns values for fields of the API, most of them valid.
  RandomMessages::Words Words() const;

  // Runs `caller` on kCallers threads, each with another seed, and waits until
  // all end. Run the test with --gtest_shuffle --gtest_random_seed=n to get
  // other seeds.
  void RunCallers(const std::function<void(int seed)>& caller);

  // Expects that the server holds no memory of requests and queues no image,
  // that no gauge is below zero, and that the server stops on SIGTERM.
  void ExpectUnharmed();

  const TimeLimit limit_{"the end of the test", kTestPatience};
  std::unique_ptr<ServerProcess> server_;

 private:
  double Sum(const std::string& name);
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_ATTACKS_RANDOM_CALLS_H_
