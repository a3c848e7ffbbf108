#include "client/rpc/predict_stream.h"

#include "client/rpc/rpc_status.h"

namespace sfmamba::client {

PredictStream::PredictStream(v1::VisionService::Stub& stub,
                             const v1::StreamConfig& config)
    : stream_(stub.StreamPredict(&context_)) {
  v1::StreamPredictRequest first;
  *first.mutable_config() = config;
  Send(first);  // If this fails, all later calls fail too.
}

PredictStream::~PredictStream() {
  if (finished_) return;
  Cancel();
  (void)Finish();
}

bool PredictStream::Send(const v1::StreamPredictRequest& message) {
  return stream_->Write(message);
}

void PredictStream::SendNoMore() { stream_->WritesDone(); }

bool PredictStream::Receive(v1::StreamPredictResponse* answer) {
  return stream_->Read(answer);
}

absl::Status PredictStream::Finish() {
  finished_ = true;
  return FromGrpcStatus(stream_->Finish());
}

}  // namespace sfmamba::client
