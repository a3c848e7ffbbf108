#ifndef SFMAMBA_SERVER_RPC_CLASSIFY_CALL_H_
#define SFMAMBA_SERVER_RPC_CLASSIFY_CALL_H_

#include "server/rpc/predict_call.h"

namespace sfmamba::rpc {

// One Classify call.
class ClassifyCall final
    : public TypedPredictCall<v1::ClassifyRequest, v1::ClassifyResponse> {
 public:
  ClassifyCall(const CallEnvironment& environment,
               grpc::CallbackServerContext* context,
               const v1::ClassifyRequest* request,
               v1::ClassifyResponse* response);

 private:
  absl::Status CheckParams() const override;
  int64_t AnswerBytes(const prediction::ImageFacts& image) const override;
  void FillTask(batching::BatchTask* task) const override;
  absl::Status FillResult(int i, const model::Result& result,
                          const image::PictureFrame& frame) override;
  absl::string_view SmallerResponse() const override;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_CLASSIFY_CALL_H_
