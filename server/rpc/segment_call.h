#ifndef SFMAMBA_SERVER_RPC_SEGMENT_CALL_H_
#define SFMAMBA_SERVER_RPC_SEGMENT_CALL_H_

#include "server/rpc/predict_call.h"

namespace sfmamba::rpc {

// One Segment call.
class SegmentCall final
    : public TypedPredictCall<v1::SegmentRequest, v1::SegmentResponse> {
 public:
  SegmentCall(const CallEnvironment& environment,
              grpc::CallbackServerContext* context,
              const v1::SegmentRequest* request, v1::SegmentResponse* response);

 private:
  absl::Status CheckParams() const override;
  int64_t AnswerBytes(const prediction::ImageFacts& image) const override;
  void FillTask(batching::BatchTask* task) const override;
  absl::Status FillResult(int i, const model::Result& result,
                          const image::PictureFrame& frame) override;
  absl::string_view SmallerResponse() const override;

  // Whether the map is to have the picture's size, not the network input's.
  bool original_size() const;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_SEGMENT_CALL_H_
