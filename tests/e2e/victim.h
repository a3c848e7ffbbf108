#ifndef SFMAMBA_TESTS_E2E_VICTIM_H_
#define SFMAMBA_TESTS_E2E_VICTIM_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"

namespace sfmamba {

// A polite caller beside an attack. It sends a Classify request to a model
// every `interval`, whether earlier requests are answered or not, over its own
// connection. The deadline is two seconds by default. Like every good client,
// it retries only UNAVAILABLE. It calls from construction until Stop().
//
//   Victim victim(server);
//   Attack(server);
//   const Victim::Count count = victim.Stop();
//   EXPECT_GE(count.answered, 0.95 * count.sent) << count.first_error;
class Victim {
 public:
  struct Count {
    int sent = 0;
    int answered = 0;         // With OK, within the deadline.
    std::string first_error;  // The first error among the others.
    absl::Duration slowest;   // The longest call that was answered.
    absl::Duration mean;      // Mean time of an answered call.
  };

  // If the server uses TLS, `authority` is the authority of its certificate in
  // PEM.
  explicit Victim(const ServerProcess& server,
                  absl::Duration interval = absl::Milliseconds(50),
                  const std::string& authority = "")
      : Victim(server.address(), interval, "tiny", authority) {}
  // `address` has the form "[::1]:8001".
  explicit Victim(const std::string& address,
                  absl::Duration interval = absl::Milliseconds(50),
                  const std::string& model = "tiny",
                  const std::string& authority = "",
                  absl::Duration deadline = absl::Seconds(2));
  // Calls over `channel`, with `token` unless it is empty.
  Victim(const std::shared_ptr<grpc::Channel>& channel, absl::Duration interval,
         const std::string& token, const std::string& model = "tiny",
         absl::Duration deadline = absl::Seconds(2));
  ~Victim();

  // Sends no more requests and waits for the answers. Call it at most once.
  Count Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Call;

  void Run(absl::Duration interval);  // The body of thread_.
  void Send() ABSL_LOCKS_EXCLUDED(mu_);
  void Ended(const grpc::Status& status, absl::Duration took)
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<v1::VisionService::Stub> stub_;
  absl::Notification stop_;
  absl::Mutex mu_;
  int open_ ABSL_GUARDED_BY(mu_) = 0;
  Count count_ ABSL_GUARDED_BY(mu_);
  const std::string model_;
  const absl::Duration deadline_;
  const std::string token_;
  std::thread thread_;  // Last: it uses everything above.
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_VICTIM_H_
