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

// A polite caller that runs during an attack. It sends a Classify request every
// `interval`, even if earlier requests have no answer yet, over its own
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
    int answered = 0;         // The number of calls that ended with OK.
    std::string first_error;  // The error of the first failed call.
    absl::Duration slowest;   // The longest time of an answered call.
    absl::Duration mean;      // The mean time of an answered call.
  };

  // If the server uses TLS, `authority` is the PEM certificate of the authority
  // that signed the server's certificate.
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
  // Calls over `channel`. Sends `token` unless it is empty.
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
  std::thread thread_;  // The last member, because the thread uses all others.
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_VICTIM_H_
