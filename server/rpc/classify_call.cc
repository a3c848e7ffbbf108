#include "server/rpc/classify_call.h"

#include <variant>

#include "server/prediction/convert_classification.h"

namespace sfmamba::rpc {

ClassifyCall::ClassifyCall(const CallEnvironment& environment,
                           grpc::CallbackServerContext* context,
                           const v1::ClassifyRequest* request,
                           v1::ClassifyResponse* response)
    : TypedPredictCall(observability::Method::kClassify,
                       model::VisionTask::kClassification, environment, context,
                       request, response) {}

absl::Status ClassifyCall::CheckParams() const {
  return prediction::ValidateParams(params(), model().labels.size());
}

int64_t ClassifyCall::AnswerBytes(const prediction::ImageFacts&) const {
  return 0;  // Too few to count.
}

void ClassifyCall::FillTask(batching::BatchTask*) const {}

absl::Status ClassifyCall::FillResult(int i, const model::Result& result,
                                      const image::PictureFrame&) {
  prediction::ToProto(std::get<model::Classification>(result), params(),
                      model().labels, this->result(i));
  return absl::OkStatus();
}

absl::string_view ClassifyCall::SmallerResponse() const {
  return "fewer images, a smaller top_k, or no include_embedding";
}

}  // namespace sfmamba::rpc
