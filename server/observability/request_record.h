#ifndef SFMAMBA_SERVER_OBSERVABILITY_REQUEST_RECORD_H_
#define SFMAMBA_SERVER_OBSERVABILITY_REQUEST_RECORD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/observability/trace_context.h"

namespace sfmamba::observability {

// What every request leaves behind: its counts, its duration and a line of the
// access log. The request is in flight while this lives, which should be until
// its answer is sent.
//
// Thread-compatible. Finish() is called exactly once.
class RequestRecord {
 public:
  // `traceparent` is the W3C header or empty: then the request gets a trace id
  // of its own. `metrics` and `log` outlive the record.
  RequestRecord(Method method, int64_t message_bytes, std::string peer,
                absl::string_view traceparent, Metrics* metrics, Logger* log);
  ~RequestRecord() { metrics_.RequestFinished(method_); }
  RequestRecord(const RequestRecord&) = delete;
  RequestRecord& operator=(const RequestRecord&) = delete;

  // SteadyNow() at arrival.
  absl::Time start() const { return start_; }

  // The trace that the request is part of.
  const TraceContext& trace() const { return trace_; }

  const std::string& request_id() const { return request_id_; }
  void set_request_id(absl::string_view id) { request_id_ = std::string(id); }
  // Whose quotas and shares the request counts for: a token's name, or an
  // address.
  void set_client(std::string client) { client_ = std::move(client); }
  void set_images(int images) { images_ = images; }
  // The model that the request is counted for; without it "_unknown".
  void set_model(std::string name, std::shared_ptr<ModelMetrics> metrics);
  // For a request about no single model.
  void set_no_model() { model_ = &metrics_.NoModel(); }

  // Counts and logs the request by `error`, although it is answered OK: none of
  // its images got what it came for.
  void CountAs(absl::Status error) { counted_as_ = std::move(error); }

  // Counts and logs the request. Returns `status` with the trace id in its
  // details.
  absl::Status Finish(const absl::Status& status);

 private:
  const Method method_;
  const std::string peer_;
  Metrics& metrics_;
  Logger& log_;
  const absl::Time start_;
  const TraceContext trace_;
  std::string client_;
  std::string request_id_;
  std::string model_name_;
  int images_ = 0;
  absl::Status counted_as_;             // OK: as it is answered.
  std::shared_ptr<ModelMetrics> held_;  // Keeps *model_ alive if set.
  ModelMetrics* model_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_REQUEST_RECORD_H_
