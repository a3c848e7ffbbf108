#include "server/rpc/detect_call.h"

#include <variant>

#include "server/prediction/convert_detections.h"

namespace sfmamba {

DetectCall::DetectCall(const CallEnvironment& environment,
                       grpc::CallbackServerContext* context,
                       const v1::DetectRequest* request,
                       v1::DetectResponse* response)
    : TypedPredictCall(Method::kDetect, VisionTask::kDetection, environment,
                       context, request, response) {}

absl::Status DetectCall::CheckParams() const {
  return ValidateParams(params(), model().labels.size());
}

bool DetectCall::wants_masks() const {
  return params().mask_encoding() !=
             v1::DetectParams::MASK_ENCODING_UNSPECIFIED &&
         model().config.detector.masks;
}

int64_t DetectCall::AnswerBytes(const ImageFacts& image) const {
  // A byte a pixel of the mask that is being encoded.
  return wants_masks() ? image.seen.pixels() : 0;
}

void DetectCall::FillTask(Task* task) const {
  task->detection = ToDetectionOptions(params());
  task->detection.masks = wants_masks();
}

absl::Status DetectCall::FillResult(int i, const Result& result,
                                    const PictureFrame& frame) {
  return ToProto(std::get<Detections>(result), frame,
                 wants_masks() ? params().mask_encoding()
                               : v1::DetectParams::MASK_ENCODING_UNSPECIFIED,
                 model().labels, this->result(i));
}

absl::string_view DetectCall::SmallerResponse() const {
  return "fewer images, a smaller max_detections, a higher score_threshold, or "
         "another mask_encoding";
}

}  // namespace sfmamba
