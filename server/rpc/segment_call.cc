#include "server/rpc/segment_call.h"

#include <variant>

#include "server/prediction/convert_segmentation.h"

namespace sfmamba::rpc {

SegmentCall::SegmentCall(const CallEnvironment& environment,
                         grpc::CallbackServerContext* context,
                         const v1::SegmentRequest* request,
                         v1::SegmentResponse* response)
    : TypedPredictCall(observability::Method::kSegment,
                       model::VisionTask::kSegmentation, environment, context,
                       request, response) {}

absl::Status SegmentCall::CheckParams() const {
  return prediction::ValidateParams(params(), model().labels.size());
}

bool SegmentCall::original_size() const {
  return params().output_size() != v1::SegmentParams::MODEL;
}

int64_t SegmentCall::AnswerBytes(const prediction::ImageFacts& image) const {
  const int64_t pixels =
      original_size() ? image.seen.pixels() : image.input.pixels();
  return pixels * (sizeof(uint16_t) + params().include_confidence_map());
}

void SegmentCall::FillTask(batching::BatchTask* task) const {
  task->segmentation.original_size = original_size();
  task->segmentation.confidence = params().include_confidence_map();
}

absl::Status SegmentCall::FillResult(int i, const model::Result& result,
                                     const image::PictureFrame&) {
  return prediction::ToProto(std::get<model::Segmentation>(result), params(),
                             model().labels, this->result(i));
}

absl::string_view SegmentCall::SmallerResponse() const {
  return "fewer images, encoding PNG_INDEX, output_size MODEL, or no "
         "include_confidence_map";
}

}  // namespace sfmamba::rpc
