#ifndef SFMAMBA_SERVER_RPC_STREAM_PREDICT_ITEM_H_
#define SFMAMBA_SERVER_RPC_STREAM_PREDICT_ITEM_H_

#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/prediction/prediction.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/proto_writer.h"
#include "server/rpc/stream/stream_item.h"
#include "server/security/caller.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// One request of a StreamPredict call.
class VisionItem : public StreamItem {
 public:
  VisionItem(std::string correlation_id, bool in_order)
      : correlation_id_(std::move(correlation_id)), in_order_(in_order) {}

  const std::string& id() const final { return correlation_id_; }
  bool in_order() const final { return in_order_; }

 protected:
  // Makes `message` the answer.
  void Answer(v1::StreamPredictResponse message) {
    message.set_correlation_id(correlation_id_);
    Serialize(message, &answer_);
  }
  void Answer(const absl::Status& error) {
    v1::StreamPredictResponse message;
    *message.mutable_error() = ToRpcStatus(error);
    Answer(std::move(message));
  }

 private:
  const std::string correlation_id_;
  const bool in_order_;
};

// A request for a prediction. `context` and `environment` outlive it.
template <typename Request, typename Response, typename TaskAnswer>
class PredictItem final : public VisionItem,
                          private ProtoWriter<Request, Response, TaskAnswer> {
 public:
  // Makes this task's alternative of the response, mutable_<task>().
  using Mutable = Response* (v1::StreamPredictResponse::*)();

  PredictItem(std::string correlation_id, bool in_order,
              grpc::ByteBuffer* request,
              const prediction::PredictionEnvironment& environment,
              const grpc::CallbackServerContext& context,
              const security::Caller& caller, Mutable alternative)
      : VisionItem(std::move(correlation_id), in_order),
        Writer(request, environment.limits.max_images),
        alternative_(alternative),
        prediction_(environment,
                    WithCall(InfoOf(context, caller),
                             observability::Method::kStreamPredict,
                             this->request_.Translate()),
                    this) {}

  void Run(const absl::Status& serving,
           absl::AnyInvocable<void()> done) override {
    done_ = std::move(done);
    prediction_.Start(serving.ok() ? this->request_.status() : serving);
  }
  void Cancel() override { prediction_.Cancel(); }

 private:
  using Writer = ProtoWriter<Request, Response, TaskAnswer>;

  void Done(const absl::Status& status) override {
    if (status.ok()) {
      v1::StreamPredictResponse message;
      (message.*alternative_)()->Swap(&this->response_);
      Answer(std::move(message));
    } else {
      Answer(status);
    }
    auto done = std::move(done_);  // This may be destroyed in it.
    done();
  }

  const Mutable alternative_;
  absl::AnyInvocable<void()> done_;
  prediction::Prediction prediction_;  // Last: it uses everything above.
};

// A message that asks for nothing that could be done.
class RefusedItem final : public VisionItem {
 public:
  RefusedItem(std::string correlation_id, bool in_order,
              const absl::Status& error)
      : VisionItem(std::move(correlation_id), in_order) {
    Answer(error);
  }

  void Run(const absl::Status&, absl::AnyInvocable<void()> done) override {
    done();
  }
  void Cancel() override {}
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_PREDICT_ITEM_H_
