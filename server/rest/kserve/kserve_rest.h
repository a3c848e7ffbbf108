#ifndef SFMAMBA_SERVER_REST_KSERVE_KSERVE_REST_H_
#define SFMAMBA_SERVER_REST_KSERVE_KSERVE_REST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/admin/model_changes.h"
#include "server/http/exchange.h"
#include "server/kserve/model_queries.h"
#include "server/kserve/repository_control.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "server/rest/kserve/route.h"

namespace sfmamba::rest {

// The Open Inference Protocol, version 2, over REST with the extension for
// binary data: the paths under /v2. docs/clients.md says how its clients ask.
//
// Thread-safe. It outlives the exchanges that it was given.
class KserveRest {
 public:
  struct Options {
    std::string version;  // The server's.
    // Whether every model makes progress, and whether the server is SERVING.
    // Both must be quick and thread-safe.
    std::function<bool()> live = [] { return true; };
    std::function<bool()> ready = [] { return true; };
    // Most bytes of a body, and of elements that JSON may stand for.
    int64_t max_body_bytes = 64 << 20;
    // See KserveService::Options.
    admin::ModelChanges* changes = nullptr;
    // Most bytes of tensors in an answer that comes as JSON. A MiB of a class
    // map takes about 5 ms to write and becomes up to 4 MiB of text.
    int64_t max_json_answer_bytes = 16 << 20;
  };

  // `serving` returns the error to answer at once, or OK; thread-safe.
  KserveRest(prediction::TransportEnvironment environment, Options options,
             std::function<absl::Status()> serving);

  // Answers a request, now or, of a prediction, when it is done. The whole
  // request is read here, which takes time in proportion to its JSON.
  void Handle(std::unique_ptr<http::Exchange> exchange);

 private:
  void Infer(const KserveRoute& route,
             std::unique_ptr<http::Exchange> exchange);
  // Loads or unloads the route's model, and answers when that has ended.
  void Change(const KserveRoute& route,
              std::unique_ptr<http::Exchange> exchange);
  // Answers metadata, readiness and statistics requests.
  http::HttpResponse Answer(const KserveRoute& route,
                            const http::HttpRequest& request) const;
  template <typename Request, typename Response>
  using Query = absl::Status (kserve::ModelQueries::*)(
      const Request& asked, Response* response,
      observability::RequestRecord* record) const;
  // Answers with what `query` says of the route's model.
  template <typename Request, typename Response>
  http::HttpResponse Describe(observability::Method method,
                              Query<Request, Response> query,
                              const KserveRoute& route,
                              const http::HttpRequest& request) const;
  http::HttpResponse ModelReady(const KserveRoute& route) const;
  http::HttpResponse Index(const http::HttpRequest& request) const;
  // Answers a request about settings of traces and logs: there are none, and
  // none can be changed. NOT_FOUND for a model that does not exist.
  http::HttpResponse Settings(const KserveRoute& route,
                              const http::HttpRequest& request) const;

  const prediction::TransportEnvironment env_;
  // env_ with the smaller limit of answers that come as JSON.
  const prediction::TransportEnvironment json_env_;
  const Options options_;
  const std::function<absl::Status()> serving_;
  const kserve::ModelQueries queries_;
  kserve::RepositoryControl control_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_KSERVE_REST_H_
