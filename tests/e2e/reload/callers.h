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

// A crowd of clients that call one model without pause, from construction until
// Stop(). Each client sends a Classify request with a deadline of ten seconds,
// waits for the answer, and sends the next request. It never retries. An answer
// contains the name of the version that computed it. The answer's label must
// begin with "v<number>-", where <number> is the number of this version.
//
// Thread-safe.
class Callers {
 public:
  // `channel` is called once for each client and returns the client's own
  // connection.
  Callers(const std::string& model, int clients,
          const std::function<std::shared_ptr<grpc::Channel>()>& channel);
  ~Callers();

  // The outcomes since the last call of Take(). `answers` counts answers by the
  // version that computed them. `errors` counts errors by reason or code.
  // `first_error` is the message of the first error.
  struct Outcomes {
    std::map<std::string, int> answers;
    std::map<std::string, int> errors;
    std::string first_error;
    std::vector<absl::Duration> latencies;  // The time of each answer.

    int answered() const;
    int failed() const;
    // Returns the latency that `percent` of the answers did not exceed.
    absl::Duration Percentile(double percent) const;
  };
  Outcomes Take() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for `count` more answers or errors, then returns them like Take().
  Outcomes TakeNext(int count) ABSL_LOCKS_EXCLUDED(mu_);
  // Sends no more requests and waits for the answers.
  void Stop();

 private:
  // The body of each client's thread.
  void Run(std::shared_ptr<grpc::Channel> channel);
  void Ended(const grpc::Status& status, const v1::ClassifyResponse& response,
             absl::Duration latency) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string model_;
  std::atomic<bool> stop_{false};
  absl::Mutex mu_;
  Outcomes outcomes_ ABSL_GUARDED_BY(mu_);
  int ended_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::thread> clients_;  // Last: the threads use everything above.
};

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_RELOAD_CALLERS_H_
