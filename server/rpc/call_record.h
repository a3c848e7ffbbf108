#ifndef SFMAMBA_SERVER_RPC_CALL_RECORD_H_
#define SFMAMBA_SERVER_RPC_CALL_RECORD_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/steady_clock.h"
#include "google/protobuf/message.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/repository/model_repository.h"

namespace sfmamba::rpc {

// What every call leaves behind: its counts, its duration and a line of the
// log.
//
// Thread-compatible. Finish() is called exactly once.
class CallRecord {
 public:
  // All outlive the record.
  CallRecord(observability::Method method,
             const google::protobuf::Message& request,
             grpc::CallbackServerContext* context,
             observability::Metrics* metrics, observability::Logger* log);

  // SteadyNow() at arrival.
  absl::Time start() const { return start_; }

  void set_request_id(absl::string_view id) { request_id_ = std::string(id); }
  void set_images(int images) { images_ = images; }
  // Whom the call is counted for; without it "_unknown".
  void set_model(const repository::ModelVersion& version);
  // For a call about no single model.
  void set_no_model() { metrics_of_model_ = &metrics_.NoModel(); }

  // Counts and logs the call; returns what goes to the client, with the trace
  // id in its details and the retry hint in the trailers.
  grpc::Status Finish(const absl::Status& status);

 private:
  const observability::Method method_;
  grpc::CallbackServerContext& context_;
  observability::Metrics& metrics_;
  observability::Logger& log_;
  const absl::Time start_;
  std::string trace_id_;
  std::string request_id_;
  std::string model_name_;
  int images_ = 0;
  std::shared_ptr<observability::ModelMetrics>
      held_;  // Keeps the next alive, if not shared.
  observability::ModelMetrics* metrics_of_model_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_CALL_RECORD_H_
