#ifndef SFMAMBA_SERVER_RPC_STREAM_PREDICT_STREAM_H_
#define SFMAMBA_SERVER_RPC_STREAM_PREDICT_STREAM_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/call.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/stream/stream_call.h"
#include "server/rpc/stream/stream_message.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::rpc {

// A StreamPredict call. The first message may say how many requests may be in
// flight and whether their order is kept; else answers go as they are ready. A
// malformed message ends the stream. A draining server says so in a notice.
class PredictStream final : public StreamCall {
 public:
  static constexpr int kMostInFlight = 64;
  static constexpr int kDefaultInFlight = 16;

  // StreamCall's constructor.
  PredictStream(const prediction::TransportEnvironment& environment,
                grpc::CallbackServerContext* context, SendWatch* sends,
                StreamRights rights, std::function<absl::Status()> serving);

 private:
  absl::StatusOr<std::unique_ptr<StreamItem>> Take(
      grpc::ByteBuffer* received) override;

  // An error if the message cannot be a request of this stream.
  absl::Status CheckItem(const StreamMessage& message);
  absl::Status Configure(const v1::StreamConfig& config);
  std::unique_ptr<StreamItem> MakeItem(StreamMessage message);
  template <typename Request, typename Response, typename Answer>
  std::unique_ptr<StreamItem> MakePredictItem(
      StreamMessage message,
      Response* (v1::StreamPredictResponse::*alternative)());

  const prediction::TransportEnvironment& env_;
  const grpc::CallbackServerContext& context_;
  // Used by Take() only.
  bool any_message_ = false;
  bool preserve_order_ = false;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_PREDICT_STREAM_H_
