#include "server/rpc/detect_call.h"

#include <variant>

#include "server/prediction/convert_detections.h"

namespace sfmamba::rpc {

DetectCall::DetectCall(const CallEnvironment& environment,
                       grpc::CallbackServerContext* context,
                       const v1::DetectRequest* request,
                       v1::DetectResponse* response)
    : TypedPredictCall(observability::Method::kDetect,
                       model::VisionTask::kDetection, environment, context,
                       request, response) {}

absl::Status DetectCall::CheckParams() const {
  return prediction::ValidateParams(params(), model().labels.size());
}

bool DetectCall::wants_masks() const {
  return params().mask_encoding() !=
             v1::DetectParams::MASK_ENCODING_UNSPECIFIED &&
         model().config.detector.masks;
}

int64_t DetectCall::AnswerBytes(const prediction::ImageFacts& image) const {
  // A byte a pixel of the mask that is being encoded.
  return wants_masks() ? image.seen.pixels() : 0;
}

void DetectCall::FillTask(batching::BatchTask* task) const {
  task->detection = prediction::ToDetectionOptions(params());
  task->detection.masks = wants_masks();
}

absl::Status DetectCall::FillResult(int i, const model::Result& result,
                                    const image::PictureFrame& frame) {
  return prediction::ToProto(std::get<model::Detections>(result), frame,
                             wants_masks()
                                 ? params().mask_encoding()
                                 : v1::DetectParams::MASK_ENCODING_UNSPECIFIED,
                             model().labels, this->result(i));
}

absl::string_view DetectCall::SmallerResponse() const {
  return "fewer images, a smaller max_detections, a higher score_threshold, or "
         "another mask_encoding";
}

}  // namespace sfmamba::rpc
