#ifndef SFMAMBA_TESTS_E2E_RELOAD_CALLERS_H_
#define SFMAMBA_TESTS_E2E_RELOAD_CALLERS_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "sfmamba/v1/vision.grpc.pb.h"

namespace sfmamba {

// A crowd of clients that ask one model without pause, from the construction
// until Stop(): each sends a Classify request with a deadline of ten seconds,
// waits for the answer, and sends the next. Nothing is tried again. The label
// of an answer must be that of the version which says that it computed it:
// labels begin with "v<number>-".
//
// Thread-safe.
class Callers {
 public:
  // `channel` makes a connection for each client.
  Callers(const std::string& model, int clients,
          const std::function<std::shared_ptr<grpc::Channel>()>& channel);
  ~Callers();

  // What has come since the last call: answers by the version that computed
  // them, and errors by reason (or code), with the first's message.
  struct Outcomes {
    std::map<std::string, int> answers;
    std::map<std::string, int> errors;
    std::string first_error;
    std::vector<absl::Duration> latencies;  // One for each answer.

    int answered() const;
    int failed() const;
    // Returns the latency that `percent` of the answers did not exceed.
    absl::Duration Percentile(double percent) const;
  };
  Outcomes Take() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for `count` more answers or errors, then does what Take() does.
  Outcomes TakeNext(int count) ABSL_LOCKS_EXCLUDED(mu_);
  // Sends no more, and waits for the answers.
  void Stop();

 private:
  void Run(std::shared_ptr<grpc::Channel> channel);  // A client's thread.
  void Ended(const grpc::Status& status, const v1::ClassifyResponse& response,
             absl::Duration latency) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string model_;
  std::atomic<bool> stop_{false};
  absl::Mutex mu_;
  Outcomes outcomes_ ABSL_GUARDED_BY(mu_);
  int ended_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::thread> clients_;  // Last: they use everything above.
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_RELOAD_CALLERS_H_
