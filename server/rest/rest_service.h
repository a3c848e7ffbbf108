#ifndef SFMAMBA_SERVER_REST_REST_SERVICE_H_
#define SFMAMBA_SERVER_REST_REST_SERVICE_H_

#include <atomic>
#include <functional>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/http/exchange.h"
#include "server/prediction/prediction.h"
#include "server/rest/vision_routes.h"
#include "server/threads/steady_cond_var.h"

namespace sfmamba::rest {

// All that is served over HTTP, by path: the typed API under /v1, the Open
// Inference Protocol under /v2, probes, metrics and the console.
// docs/serving.md, "REST", lists the routes.
//
// Thread-safe. The destructor waits until every exchange has ended: end their
// connections before.
class RestService {
 public:
  using Handler = std::function<void(std::unique_ptr<http::Exchange>)>;

  struct Options {
    // Whether every model makes progress, and whether the server is SERVING.
    // Both must be quick and thread-safe.
    std::function<bool()> live = [] { return true; };
    std::function<bool()> ready = [] { return true; };
    // The answer to GET /metrics. If it is null, there is none.
    std::function<http::HttpResponse(const http::HttpRequest&)> metrics;
    // For paths of /v2, and for "/" and those of /console. A null one is not
    // served.
    Handler kserve;
    Handler console;
  };

  RestService(prediction::PredictionEnvironment environment, Options options);
  ~RestService();

  // Answers a request, now or later. Does not wait, but works as long as it
  // takes to read the request's body.
  void Handle(std::unique_ptr<http::Exchange> exchange);

  // From now on requests for models are answered UNAVAILABLE with reason
  // DRAINING; see CheckServing().
  void StartDraining() { draining_.store(true); }
  // UNAVAILABLE while draining. For handlers.
  absl::Status CheckServing() const;
  // Waits for the answers of all requests to be sent; false if `timeout` was
  // too short.
  bool WaitUntilIdle(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Tracked;  // An exchange that is waited for.

  void Ended() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const VisionRoutes vision_;
  std::atomic<bool> draining_{false};

  absl::Mutex mu_;
  server::SteadyCondVar ended_;        // Signalled when open_ falls.
  int open_ ABSL_GUARDED_BY(mu_) = 0;  // Exchanges that have not ended.
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_REST_SERVICE_H_
