#ifndef SFMAMBA_TESTS_E2E_SOAK_SOAK_RUN_H_
#define SFMAMBA_TESTS_E2E_SOAK_SOAK_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/commands/flag_set.h"
#include "client/rpc/vision_client.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/soak/soak_counts.h"

namespace sfmamba {

// How long a request of a soak may take.
inline constexpr absl::Duration kSoakTimeout = absl::Seconds(60);

// The call that the request is for.
absl::StatusOr<v1::ClassifyResponse> Call(client::VisionClient& client,
                                          const v1::ClassifyRequest& request);
absl::StatusOr<v1::DetectResponse> Call(client::VisionClient& client,
                                        const v1::DetectRequest& request);
absl::StatusOr<v1::SegmentResponse> Call(client::VisionClient& client,
                                         const v1::SegmentRequest& request);

// What was wrong in a soak, and the server's memory meanwhile. Thread-safe.
class SoakReport {
 public:
  // Prints the first 20.
  void Complain(const std::string& what) ABSL_LOCKS_EXCLUDED(mu_);
  int complaints() const ABSL_LOCKS_EXCLUDED(mu_);

  // Records the memory that the server holds after `done` requests and returns
  // it, in bytes.
  double SampleMemory(const ServerProcess& server, int done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Prints what was noted. Complains if it grew by more than 1 MiB in 10,000
  // requests and `requests` are enough to say so.
  void CheckMemory(int requests) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  int complaints_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<MemorySample> memory_ ABSL_GUARDED_BY(mu_);
};

// What a soak is given.
struct SoakStand {
  // Serves "tiny", "fickle" with the same weights, "finder" and "painter".
  const ServerProcess& server;
  int requests;      // How many to send.
  std::string jpeg;  // A picture's bytes.
};

// The main function of a soak: reads `flags` and those that all have, starts a
// server, lets `soak` run, and stops the server. Returns the exit status.
int RunSoak(int argc, char** argv, client::FlagSet* flags,
            const std::function<void(const SoakStand&, SoakReport*)>& soak);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SOAK_SOAK_RUN_H_
