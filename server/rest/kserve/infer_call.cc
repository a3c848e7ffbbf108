#include "server/rest/kserve/infer_call.h"

#include <utility>

#include "absl/memory/memory.h"
#include "server/observability/metrics.h"
#include "server/rest/kserve/response.h"

namespace sfmamba::rest {

KserveInferCall::KserveInferCall(OutputForms outputs,
                                 std::unique_ptr<http::Exchange> exchange)
    : outputs_(std::move(outputs)), exchange_(std::move(exchange)) {}

void KserveInferCall::Start(const prediction::TransportEnvironment& environment,
                            rpc::CallInfo call, KserveRequest request,
                            std::unique_ptr<http::Exchange> exchange) {
  const std::shared_ptr<KserveInferCall> self = absl::WrapUnique(
      new KserveInferCall(std::move(request.outputs), std::move(exchange)));
  // The inference's callback keeps this alive until the inference has ended.
  self->inference_ = std::make_unique<kserve::Inference>(
      environment, observability::Method::kModelInfer, std::move(call),
      &request.message,
      [self](const absl::Status& status,
             inference::packed::ModelInferResponse* response) {
        self->Answer(self, status, response);
      });
  self->exchange_->OnCancel([weak = std::weak_ptr<KserveInferCall>(self)] {
    const std::shared_ptr<KserveInferCall> call = weak.lock();
    if (call != nullptr) call->inference_->Cancel();
  });
  self->inference_->Run(absl::OkStatus());
}

void KserveInferCall::Answer(std::shared_ptr<KserveInferCall> self,
                             const absl::Status& status,
                             inference::packed::ModelInferResponse* response) {
  // The answer's callback destroys this, and with it exchange_.
  const std::unique_ptr<http::Exchange> exchange = std::move(exchange_);
  exchange->Answer(
      status.ok() ? InferResponse(outputs_, response) : KserveError(status),
      [self = std::move(self)] {});
}

}  // namespace sfmamba::rest
