#ifndef SFMAMBA_SERVER_RPC_DETECT_CALL_H_
#define SFMAMBA_SERVER_RPC_DETECT_CALL_H_

#include "server/rpc/predict_call.h"

namespace sfmamba::rpc {

// One Detect call.
class DetectCall final
    : public TypedPredictCall<v1::DetectRequest, v1::DetectResponse> {
 public:
  DetectCall(const CallEnvironment& environment,
             grpc::CallbackServerContext* context,
             const v1::DetectRequest* request, v1::DetectResponse* response);

 private:
  absl::Status CheckParams() const override;
  int64_t AnswerBytes(const prediction::ImageFacts& image) const override;
  void FillTask(batching::BatchTask* task) const override;
  absl::Status FillResult(int i, const model::Result& result,
                          const image::PictureFrame& frame) override;
  absl::string_view SmallerResponse() const override;

  // Whether masks were asked for and the model has any.
  bool wants_masks() const;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_DETECT_CALL_H_
