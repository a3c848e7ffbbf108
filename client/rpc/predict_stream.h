#ifndef SFMAMBA_CLIENT_RPC_PREDICT_STREAM_H_
#define SFMAMBA_CLIENT_RPC_PREDICT_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "sfmamba/v1/vision.grpc.pb.h"

namespace sfmamba::client {

// A StreamPredict call. One thread sends, another receives:
//
//   PredictStream stream(stub, config);
//   std::thread sender([&] {
//     while (more && stream.Send(message)) { ... }
//     stream.SendNoMore();
//   });
//   while (stream.Receive(&answer)) { ... }
//   sender.join();
//   absl::Status status = stream.Finish();
class PredictStream {
 public:
  // `stub` outlives it. Sends `config` as the first message.
  PredictStream(v1::VisionService::Stub& stub, const v1::StreamConfig& config);
  // Cancels the call unless it was finished.
  ~PredictStream();

  // Blocks while the server takes no more; false if the call has ended.
  bool Send(const v1::StreamPredictRequest& message);
  void SendNoMore();

  // Waits for the next answer; false if none will come any more.
  bool Receive(v1::StreamPredictResponse* answer);

  // What the call ended with. To be called once, after Receive() was false and
  // nothing is being sent.
  absl::Status Finish();

  // Ends the call with CANCELLED. Any thread.
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::StreamPredictRequest,
                                                 v1::StreamPredictResponse>>
      stream_;
  bool finished_ = false;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_RPC_PREDICT_STREAM_H_
