#ifndef SFMAMBA_SERVER_RPC_VISION_SERVICE_H_
#define SFMAMBA_SERVER_RPC_VISION_SERVICE_H_

#include <atomic>
#include <memory>

#include "grpcpp/support/message_allocator.h"
#include "server/observability/request_record.h"
#include "server/prediction/prediction.h"
#include "sfmamba/v1/vision.grpc.pb.h"

namespace sfmamba::rpc {

// sfmamba.v1.VisionService. No handler blocks or lets an exception out.
// Thread-safe.
class VisionService final : public v1::VisionService::CallbackService {
 public:
  explicit VisionService(prediction::PredictionEnvironment environment);

  // From now on new calls are answered UNAVAILABLE with reason DRAINING, to be
  // tried elsewhere at once.
  void StartDraining() { draining_.store(true); }

  grpc::ServerUnaryReactor* Classify(grpc::CallbackServerContext* context,
                                     const v1::ClassifyRequest* request,
                                     v1::ClassifyResponse* response) override;
  grpc::ServerUnaryReactor* Detect(grpc::CallbackServerContext* context,
                                   const v1::DetectRequest* request,
                                   v1::DetectResponse* response) override;
  grpc::ServerUnaryReactor* Segment(grpc::CallbackServerContext* context,
                                    const v1::SegmentRequest* request,
                                    v1::SegmentResponse* response) override;
  // UNIMPLEMENTED.
  grpc::ServerBidiReactor<v1::StreamPredictRequest, v1::StreamPredictResponse>*
  StreamPredict(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelRequest* request,
                                     v1::Model* response) override;
  grpc::ServerUnaryReactor* ListModels(
      grpc::CallbackServerContext* context,
      const v1::ListModelsRequest* request,
      v1::ListModelsResponse* response) override;

 private:
  // UNAVAILABLE while draining.
  absl::Status CheckServing() const;
  observability::RequestRecord Record(
      observability::Method method, int64_t message_bytes,
      const grpc::CallbackServerContext& context) const;

  const prediction::PredictionEnvironment env_;
  template <typename Request, typename Response>
  using Allocator = std::unique_ptr<grpc::MessageAllocator<Request, Response>>;
  const Allocator<v1::ClassifyRequest, v1::ClassifyResponse> classify_messages_;
  const Allocator<v1::DetectRequest, v1::DetectResponse> detect_messages_;
  const Allocator<v1::SegmentRequest, v1::SegmentResponse> segment_messages_;
  std::atomic<bool> draining_{false};
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_VISION_SERVICE_H_
