#ifndef SFMAMBA_TESTS_SERVER_TRACING_COLLECTOR_STAND_IN_H_
#define SFMAMBA_TESTS_SERVER_TRACING_COLLECTOR_STAND_IN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "nlohmann/json.hpp"

namespace sfmamba::tracing {

// An OTLP collector over gRPC on a free port of 127.0.0.1. It stores all
// requests. Thread-safe.
class CollectorStandIn final : private grpc::CallbackGenericService {
 public:
  explicit CollectorStandIn(
      const std::shared_ptr<grpc::ServerCredentials>& credentials =
          grpc::InsecureServerCredentials());
  ~CollectorStandIn() override;

  int port() const { return port_; }
  std::string url() const;  // "http://127.0.0.1:port"

  // From now on, answers each request with `status`.
  void AnswerWith(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // From now on, answers no request.
  void Hang() ABSL_LOCKS_EXCLUDED(mu_);

  // Returns all requests so far. Each is an ExportTraceServiceRequest in OTLP's
  // JSON, in which IDs are hexadecimal and enums are numbers.
  std::vector<nlohmann::json> requests() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the spans of all requests.
  std::vector<nlohmann::json> spans() const ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until there are `count` spans. Returns false if `limit` passes first.
  bool AwaitSpans(size_t count, absl::Duration limit) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Call;

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
  void Take(const grpc::ByteBuffer& request) ABSL_LOCKS_EXCLUDED(mu_);

  mutable absl::Mutex mu_;
  grpc::Status status_ ABSL_GUARDED_BY(mu_);
  bool hangs_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<nlohmann::json> requests_ ABSL_GUARDED_BY(mu_);
  std::vector<nlohmann::json> spans_ ABSL_GUARDED_BY(mu_);
  int port_ = 0;
  // The last member, because the server uses all members above.
  std::unique_ptr<grpc::Server> server_;
};

// Returns the value of a span's attribute. A number is returned as its digits.
// Returns "" if the span has no such attribute.
std::string AttributeOf(const nlohmann::json& span, const std::string& key);

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_TESTS_SERVER_TRACING_COLLECTOR_STAND_IN_H_
