#ifndef SFMAMBA_TESTS_TESTING_PATIENCE_H_
#define SFMAMBA_TESTS_TESTING_PATIENCE_H_

#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace sfmamba {

// How long a test waits for an event. It is much longer than the event takes,
// and shorter than Bazel's time limit for a small test.
inline constexpr absl::Duration kPatience = absl::Seconds(30);
// The time limit for a whole test that runs servers or processes. Helpers that
// wait for the test also use this limit. For example, a fake model waits until
// the test lets a batch end. The limit is longer than kPatience, so the test's
// own waits fail first.
inline constexpr absl::Duration kTestPatience = absl::Minutes(2);

// Ends the process with a message that names the missing event, if this object
// lives longer than its limit. If only the test failed, its destructors would
// wait for the same event forever. Use this class for waits without a timeout,
// for example for a stream's Read():
//   TimeLimit limit("the watch's next answer");
//   reader->Read(&response);
class TimeLimit {
 public:
  explicit TimeLimit(std::string what, absl::Duration limit = kPatience);
  ~TimeLimit();

 private:
  absl::Notification came_;
  std::thread watch_;
};

// These functions wait. A TimeLimit ends the process if the wait takes longer
// than `limit`.
void WaitFor(const absl::Notification& notification, std::string what,
             absl::Duration limit = kPatience);
void WaitFor(absl::BlockingCounter& counter, std::string what,
             absl::Duration limit = kPatience);
void Join(std::thread& thread, std::string what,
          absl::Duration limit = kPatience);
// Waits until the condition is true. Calls it repeatedly, because nothing
// signals the change.
void WaitUntil(absl::FunctionRef<bool()> condition, std::string what,
               absl::Duration limit = kPatience);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_TESTING_PATIENCE_H_
