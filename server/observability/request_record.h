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

// Records one request in the metrics and the access log. While this object
// exists, the request counts as in flight. The object should therefore live
// until the response is sent.
//
// Thread-compatible. Finish() must be called exactly once.
class RequestRecord {
 public:
  // `traceparent` is the W3C header. If the header is empty or malformed, the
  // request gets a new trace id. `metrics` and `log` must outlive the record.
  RequestRecord(Method method, int64_t message_bytes, std::string peer,
                absl::string_view traceparent, Metrics* metrics, Logger* log);
  ~RequestRecord() { metrics_.RequestFinished(method_); }
  RequestRecord(const RequestRecord&) = delete;
  RequestRecord& operator=(const RequestRecord&) = delete;

  // Returns the time of the request's arrival, by base::SteadyNow().
  absl::Time start() const { return start_; }

  // Returns the trace that contains the request.
  const TraceContext& trace() const { return trace_; }

  const std::string& request_id() const { return request_id_; }
  void set_request_id(absl::string_view id) { request_id_ = std::string(id); }
  // Sets the client that sent the request. `client` is the client's name in the
  // token file or the client's address.
  void set_client(std::string client) { client_ = std::move(client); }
  void set_images(int images) { images_ = images; }
  // Sets the model in whose metrics the request is counted. If neither
  // set_model() nor set_no_model() is called, the request is counted under the
  // model name "_unknown".
  void set_model(std::string name, std::shared_ptr<ModelMetrics> metrics);
  // Records that the request concerns no single model.
  void set_no_model() { model_ = &metrics_.NoModel(); }

  // Makes Finish() record the request as failed with `error` although the
  // response is OK. Used if every image of the request failed.
  void CountAs(absl::Status error) { counted_as_ = std::move(error); }

  // Records the request in the metrics and the log. If `status` is an error,
  // returns this error with the trace id added to its details. Otherwise,
  // returns OK.
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
  // If the response is OK, Finish() records this status instead of OK. See
  // CountAs().
  absl::Status counted_as_;
  std::shared_ptr<ModelMetrics> held_;  // Keeps *model_ alive if set.
  ModelMetrics* model_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_REQUEST_RECORD_H_
