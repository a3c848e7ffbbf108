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
// waits for the answer, and sends the next. It never retries. Labels begin with
// "v<number>-". The label of an answer must match the version that the answer
// names.
//
// Thread-safe.
class Callers {
 public:
  // `channel` makes one connection for each client.
  Callers(const std::string& model, int clients,
          const std::function<std::shared_ptr<grpc::Channel>()>& channel);
  ~Callers();

  // The outcomes since the last call. Answers are counted by the version that
  // computed them, and errors by reason or code. `first_error` is the first
  // message.
  struct Outcomes {
    std::map<std::string, int> answers;
    std::map<std::string, int> errors;
    std::string first_error;
    std::vector<absl::Duration> latencies;  // One per answer.

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
  void Run(std::shared_ptr<grpc::Channel> channel);  // A client's thread.
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
