#ifndef SFMAMBA_SERVER_REST_KSERVE_INFER_CALL_H_
#define SFMAMBA_SERVER_REST_KSERVE_INFER_CALL_H_

#include <memory>

#include "absl/status/status.h"
#include "server/http/exchange.h"
#include "server/kserve/inference.h"
#include "server/prediction/transport_environment.h"
#include "server/rest/kserve/request.h"
#include "server/rpc/call.h"

namespace sfmamba::rest {

// A request to infer that came over REST. It lives until its answer is sent, so
// that the prediction counts what it holds until then.
class KserveInferCall {
 public:
  // Starts the prediction, which answers the exchange and is cancelled if the
  // client goes. `environment` outlives it.
  static void Start(const prediction::TransportEnvironment& environment,
                    rpc::CallInfo call, KserveRequest request,
                    std::unique_ptr<http::Exchange> exchange);

 private:
  explicit KserveInferCall(OutputForms outputs,
                           std::unique_ptr<http::Exchange> exchange);

  // `self` is this.
  void Answer(std::shared_ptr<KserveInferCall> self, const absl::Status& status,
              inference::packed::ModelInferResponse* response);

  const OutputForms outputs_;
  std::unique_ptr<http::Exchange> exchange_;  // Null once it is answered.
  std::unique_ptr<kserve::Inference> inference_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_KSERVE_INFER_CALL_H_
