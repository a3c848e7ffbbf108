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

// The maximum time of a request in a soak test.
inline constexpr absl::Duration kSoakTimeout = absl::Seconds(60);

// Call the method that matches the request.
absl::StatusOr<v1::ClassifyResponse> Call(client::VisionClient& client,
                                          const v1::ClassifyRequest& request);
absl::StatusOr<v1::DetectResponse> Call(client::VisionClient& client,
                                        const v1::DetectRequest& request);
absl::StatusOr<v1::SegmentResponse> Call(client::VisionClient& client,
                                         const v1::SegmentRequest& request);

// Collects the errors of a soak test and samples of the server's memory.
// Thread-safe.
class SoakReport {
 public:
  // Records an error. Prints only the first 20 errors.
  void Complain(const std::string& what) ABSL_LOCKS_EXCLUDED(mu_);
  int complaints() const ABSL_LOCKS_EXCLUDED(mu_);

  // Records and returns the server's memory in bytes after `done` requests.
  double SampleMemory(const ServerProcess& server, int done)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Prints the latest sample and the growth. Reports an error if the memory
  // grew by more than 1 MiB per 10,000 requests. Does not report this error if
  // there were too few `requests` to measure the growth.
  void CheckMemory(int requests) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  int complaints_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<MemorySample> memory_ ABSL_GUARDED_BY(mu_);
};

// What a soak test uses.
struct SoakStand {
  // This server has the models "tiny", "fickle", "finder" and "painter". It
  // loads "fickle" from the folder of "tiny".
  const ServerProcess& server;
  int requests;      // How many requests to send.
  std::string jpeg;  // The content of a picture file.
};

// The main function of a soak test. It reads `flags` and the common flags,
// starts a server, runs `soak`, and stops the server. Returns the exit status.
int RunSoak(int argc, char** argv, client::FlagSet* flags,
            const std::function<void(const SoakStand&, SoakReport*)>& soak);

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_SOAK_SOAK_RUN_H_
