#ifndef SFMAMBA_SERVER_REST_VISION_ROUTES_H_
#define SFMAMBA_SERVER_REST_VISION_ROUTES_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/http/exchange.h"
#include "server/prediction/prediction.h"

namespace sfmamba::rest {

// The typed API, sfmamba.v1.VisionService, under /v1/models:
//   GET  /v1/models                     ListModels
//   GET  /v1/models/{id}                GetModel
//   POST /v1/models/{id}:classify       Classify, and so :detect, :segment; PUT
//                                       does the same, for curl -T
// `{id}` may be followed by /versions/{n}. docs/serving.md,
// "REST", says how requests and answers are written.
//
// Thread-safe.
class VisionRoutes {
 public:
  // `serving` returns the error to answer at once, or OK; thread-safe.
  VisionRoutes(prediction::PredictionEnvironment environment,
               std::function<absl::Status()> serving);

  // Answers a request of a path under /v1/models. Takes long for a long body.
  void Handle(std::unique_ptr<http::Exchange> exchange) const;

 private:
  template <typename Call, typename Request>
  void Predict(observability::Method method, const std::string& model,
               std::unique_ptr<http::Exchange> exchange) const;
  void GetModel(const std::string& name,
                std::unique_ptr<http::Exchange> exchange) const;
  void ListModels(std::unique_ptr<http::Exchange> exchange) const;

  const prediction::PredictionEnvironment env_;
  const std::function<absl::Status()> serving_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_VISION_ROUTES_H_
