#ifndef SFMAMBA_SERVER_RPC_STREAM_ITEM_H_
#define SFMAMBA_SERVER_RPC_STREAM_ITEM_H_

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
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// One request of a stream and its answer. Until it is destroyed the answer
// counts as held memory: that is to be done once it is sent.
class StreamItem {
 public:
  explicit StreamItem(std::string correlation_id)
      : correlation_id_(std::move(correlation_id)) {}
  virtual ~StreamItem() = default;

  const std::string& correlation_id() const { return correlation_id_; }
  // The StreamPredictResponse, once it has ended.
  const grpc::ByteBuffer& answer() const { return answer_; }

  // `serving` is the error to answer at once, or OK. Called once.
  virtual void Run(const absl::Status& serving) = 0;
  // At any time after Run() was called, by any thread.
  virtual void Cancel() = 0;

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
  grpc::ByteBuffer answer_;
};

// A request for a prediction. Calls `done` once, as its last act: the item may
// be destroyed in it. `context` and `environment` outlive it.
template <typename Request, typename Response, typename TaskAnswer>
class PredictItem final : public StreamItem,
                          private ProtoWriter<Request, Response, TaskAnswer> {
 public:
  // Of the response that has the alternative.
  using Mutable = Response* (v1::StreamPredictResponse::*)();

  PredictItem(std::string correlation_id, grpc::ByteBuffer* request,
              const prediction::PredictionEnvironment& environment,
              const grpc::CallbackServerContext& context, Mutable alternative,
              absl::AnyInvocable<void()> done)
      : StreamItem(std::move(correlation_id)),
        Writer(request, environment.limits.max_images),
        alternative_(alternative),
        done_(std::move(done)),
        prediction_(
            environment,
            WithCall(InfoOf(context), observability::Method::kStreamPredict,
                     this->request_.Translate()),
            this) {}

  void Run(const absl::Status& serving) override {
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
class RefusedItem final : public StreamItem {
 public:
  RefusedItem(std::string correlation_id, const absl::Status& error)
      : StreamItem(std::move(correlation_id)) {
    Answer(error);
  }

  void Run(const absl::Status&) override {}
  void Cancel() override {}
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_ITEM_H_
