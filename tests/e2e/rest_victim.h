#ifndef SFMAMBA_TESTS_E2E_REST_VICTIM_H_
#define SFMAMBA_TESTS_E2E_REST_VICTIM_H_

#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tests/e2e/victim.h"

namespace sfmamba {

// A polite caller over REST beside an attack: classifies one picture after
// another with the model "tiny", one every `interval`. Each call has a
// connection of its own and a deadline of five seconds.
class RestVictim {
 public:
  // `port` of 127.0.0.1.
  explicit RestVictim(int port,
                      absl::Duration interval = absl::Milliseconds(100));
  ~RestVictim();

  // Sends no more and waits for the answer. Called at most once.
  Victim::Count Stop();

 private:
  void Run(int port, absl::Duration interval);  // The body of thread_.

  absl::Notification stop_;
  Victim::Count count_;  // Used by thread_ until it ends.
  std::thread thread_;   // Last: it uses everything above.
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_REST_VICTIM_H_
