#ifndef SFMAMBA_CLIENT_RPC_PREDICT_STREAM_H_
#define SFMAMBA_CLIENT_RPC_PREDICT_STREAM_H_

#include <memory>

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/sync_stream.h"
#include "sfmamba/v1/vision.grpc.pb.h"

namespace sfmamba::client {

// A StreamPredict call. One thread sends and another thread receives:
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
  // Sends `config` as the first message. `stub` must outlive the stream.
  PredictStream(v1::VisionService::Stub& stub, const v1::StreamConfig& config);
  // Cancels the call unless Finish() was called.
  ~PredictStream();

  // Sends a message. If the server does not read fast enough, gRPC's flow
  // control blocks this. Returns false if the call has ended.
  bool Send(const v1::StreamPredictRequest& message);
  void SendNoMore();

  // Waits for the next answer. Returns false if no other answer will arrive.
  bool Receive(v1::StreamPredictResponse* answer);

  // Returns the status with which the call ended. May be called only once,
  // after Receive() has returned false and all calls of Send() have returned.
  absl::Status Finish();

  // Ends the call with CANCELLED. Any thread may call this.
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
