#ifndef SFMAMBA_TESTS_SERVER_RUNNING_SERVER_H_
#define SFMAMBA_TESTS_SERVER_RUNNING_SERVER_H_

#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "model/config.h"
#include "server/observability/log.h"
#include "server/server.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/server/fake_model.h"

namespace sfmamba::server {

// Writes <repository>/<id>/<version>/ with a configuration of ten classes,
// their labels, and weights that FakeModel does not read. `batching` has fields
// of the batching configuration, and `more` has other fields.
void WriteModel(const std::string& repository, const std::string& id,
                const std::string& version, const std::string& batching = "",
                model::VisionTask task = model::VisionTask::kClassification,
                const std::string& more = "");

// Makes an empty folder for the running test.
std::string NewFolder(const std::string& name);

// The end of a call.
struct Ending {
  grpc::StatusCode code = grpc::StatusCode::OK;
  std::string message;
  std::string reason;  // The reason in ErrorInfo.
  std::string field;   // The field in BadRequest.
  std::map<std::string, std::string> metadata;
  bool has_retry_info = false;
  std::string pushback;  // The value of grpc-retry-pushback-ms.
};
Ending EndingOf(const grpc::Status& status,
                const grpc::ClientContext* context = nullptr);

// A server in this process, on free ports, with fake models.
class RunningServer {
 public:
  // `config` needs a model_repository. All ports are open, even if `load` is
  // false.
  explicit RunningServer(v1::ServerConfig config, bool load = true);

  // Makes the stubs of a new connection.
  void Connect();

  // Returns once the server has answered another call on the connection. By
  // then it has read everything sent before, for example a cancellation.
  void AwaitRoundTrip();

  Server& server() { return *server_; }
  Gate& gate() { return gate_; }
  // Advances the clock for the deadlines of calls.
  void AdvanceClock(absl::Duration duration) {
    clock_advance_nanos_ += absl::ToInt64Nanoseconds(duration);
  }
  // Returns how many times a model found that its device has failed
  // permanently.
  int device_failures() const { return device_failures_.load(); }
  // Returns how many times models were asked to release unneeded memory.
  int memory_releases() const { return memory_releases_.load(); }
  v1::VisionService::Stub& stub() { return *stub_; }
  grpc::health::v1::Health::Stub& health() { return *health_; }
  std::shared_ptr<grpc::Channel> channel() { return channel_; }

  // Returns the current text of /metrics.
  std::string Exposition() const;
  // Returns the current sum of `name` over the samples with `labels`.
  double Sum(const std::string& name,
             const std::initializer_list<std::string>& labels) const;
  // Waits up to half a minute until the sum of `name` over the samples with
  // `labels` is `value`. Returns the last sum.
  double WaitForSum(const std::string& name,
                    const std::initializer_list<std::string>& labels,
                    double value) const;
  std::string Log() const;

 private:
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log_file_;
  observability::Logger log_;
  Gate gate_;
  std::atomic<int64_t> clock_advance_nanos_{0};
  std::atomic<int> device_failures_{0};
  std::atomic<int> memory_releases_{0};
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::VisionService::Stub> stub_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

// Returns a request for one image of the input's size, with all pixels `grey`.
v1::ClassifyRequest GreyRequest(int grey);
v1::Image GreyImage(int grey);

}  // namespace sfmamba::server

#endif  // SFMAMBA_TESTS_SERVER_RUNNING_SERVER_H_
