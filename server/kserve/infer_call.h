#ifndef SFMAMBA_SERVER_KSERVE_INFER_CALL_H_
#define SFMAMBA_SERVER_KSERVE_INFER_CALL_H_

#include <utility>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/kserve/inference.h"
#include "server/observability/metrics.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/call.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/unary_call.h"
#include "server/security/caller.h"

namespace sfmamba::kserve {

// A ModelInfer call.
class InferCall final : public rpc::UnaryCall {
 public:
  InferCall(const prediction::TransportEnvironment& environment,
            grpc::CallbackServerContext* context, security::Caller caller,
            grpc::ByteBuffer* request, grpc::ByteBuffer* response,
            rpc::SendWatch* sends)
      : UnaryCall(context, sends),
        sent_(*response),
        inference_(environment, observability::Method::kModelInfer,
                   rpc::InfoOf(*context, std::move(caller)), request,
                   [this](const absl::Status& status,
                          inference::packed::ModelInferResponse* answer) {
                     Answer(status, *answer);
                   }) {}

  // `serving` is the error to answer at once, or OK.
  void Run(const absl::Status& serving) { inference_.Run(serving); }

  void OnCancel() override { inference_.Cancel(); }

 private:
  void Answer(const absl::Status& status,
              const inference::packed::ModelInferResponse& answer) {
    if (status.ok()) rpc::Serialize(answer, &sent_);
    Send(status);
  }

  grpc::ByteBuffer& sent_;  // The response's bytes.
  Inference inference_;     // Last: it uses everything above.
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_INFER_CALL_H_
