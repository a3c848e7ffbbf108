#ifndef SFMAMBA_TESTS_E2E_REST_VICTIM_H_
#define SFMAMBA_TESTS_E2E_REST_VICTIM_H_

#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tests/e2e/victim.h"

namespace sfmamba {

// A polite caller over REST that runs during an attack. It classifies a picture
// with the model "tiny" every `interval`, but never two at a time. Each call
// has its own connection and a deadline of five seconds.
class RestVictim {
 public:
  // Calls `port` of 127.0.0.1.
  explicit RestVictim(int port,
                      absl::Duration interval = absl::Milliseconds(100));
  ~RestVictim();

  // Sends no more requests and waits for the answer. Call it at most once.
  Victim::Count Stop();

 private:
  void Run(int port, absl::Duration interval);  // The body of thread_.

  absl::Notification stop_;
  Victim::Count count_;  // Used by thread_ until it ends.
  std::thread thread_;   // The last member, because the thread uses all others.
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_REST_VICTIM_H_
