#ifndef SFMAMBA_SERVER_RPC_PREDICT_CALL_H_
#define SFMAMBA_SERVER_RPC_PREDICT_CALL_H_

#include <utility>

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/prediction/prediction.h"
#include "server/rpc/call.h"
#include "server/rpc/proto_writer.h"
#include "server/rpc/send_watch.h"
#include "server/security/caller.h"

namespace sfmamba::rpc {

// A unary call that asks a model about images: translates the bytes of its
// message into a prediction and the answers back. A message that is malformed
// is answered, counted and logged like any other. The parameters are those of
// ProtoWriter.
template <typename Request, typename Response, typename Answer>
class PredictCall final : public UnaryCall,
                          private ProtoWriter<Request, Response, Answer> {
 public:
  PredictCall(observability::Method method,
              const prediction::PredictionEnvironment& environment,
              grpc::CallbackServerContext* context, security::Caller caller,
              grpc::ByteBuffer* request, grpc::ByteBuffer* response,
              SendWatch* sends)
      : UnaryCall(context, sends),
        Writer(request, environment.limits.max_images),
        sent_(*response),
        prediction_(environment,
                    this->request_.Translate(
                        method, InfoOf(*context, std::move(caller))),
                    this) {}

  // `serving` is the error to answer at once, or OK.
  void Run(const absl::Status& serving) {
    prediction_.Start(serving.ok() ? this->request_.status() : serving);
  }

  void OnCancel() override { prediction_.Cancel(); }

 private:
  using Writer = ProtoWriter<Request, Response, Answer>;

  void Done(const absl::Status& status) override {
    if (status.ok()) {
      Serialize(this->response_, &sent_);
      this->response_ = Response();  // The bytes may take long to be sent.
    }
    Send(status);
  }

  grpc::ByteBuffer& sent_;             // The response's bytes.
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

using ClassifyCall = PredictCall<v1::ClassifyRequest, v1::ClassifyResponse,
                                 prediction::ClassificationAnswer>;
using DetectCall = PredictCall<v1::DetectRequest, v1::DetectResponse,
                               prediction::DetectionAnswer>;
using SegmentCall = PredictCall<v1::SegmentRequest, v1::SegmentResponse,
                                prediction::SegmentationAnswer>;

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PREDICT_CALL_H_
