#include "server/prediction/picture_crops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "server/errors/error.h"

namespace sfmamba::prediction {
namespace {

// Returns a copy of the environment with no limit on the number of images of a
// request.
PredictionEnvironment WithAnyImages(PredictionEnvironment environment) {
  environment.limits.max_images = std::numeric_limits<int>::max();
  return environment;
}

// Converts an error from classifying the crops to an error of the detection
// request. An INVALID_ARGUMENT gets the field "params.crops", because the error
// concerns the number of crops or the model that classifies the crops.
absl::Status OfCrops(const absl::Status& status) {
  return absl::IsInvalidArgument(status)
             ? server::AtField("params.crops", status)
             : status;
}

}  // namespace

image::PixelRect CropOf(const v1::BoundingBox& box, float margin,
                        const image::PictureSize& picture) {
  const float across = margin * (box.x_max() - box.x_min());
  const float down = margin * (box.y_max() - box.y_min());
  const auto cut = [](float value, int least, int most) {
    return static_cast<int>(std::clamp<float>(value, least, most));
  };
  image::PixelRect rect;
  rect.left = cut(std::floor(box.x_min() - across), 0, picture.width - 1);
  rect.top = cut(std::floor(box.y_min() - down), 0, picture.height - 1);
  rect.width =
      cut(std::ceil(box.x_max() + across), rect.left + 1, picture.width) -
      rect.left;
  rect.height =
      cut(std::ceil(box.y_max() + down), rect.top + 1, picture.height) -
      rect.top;
  return rect;
}

PictureCrops::PictureCrops(const PredictionEnvironment& environment,
                           image::RgbImage picture, server::MemoryHold memory,
                           v1::DetectResult found)
    : environment_(WithAnyImages(environment)),
      picture_(std::move(picture)),
      memory_(std::move(memory)),
      found_(std::move(found)) {}

void PictureCrops::Start(PredictionRequest request, const v1::Crops& crops,
                         const Prediction& parent, Answered answered) {
  answered_ = std::move(answered);
  partial_ = request.options.allow_partial_results;
  auto& params = request.params.emplace<v1::ClassifyParams>();
  params.set_top_k(crops.top_k() == 0 ? 1 : crops.top_k());
  params.set_min_score(crops.min_score());
  params.set_include_embedding(crops.include_embedding());
  request.images = found_.detections_size();
  request.image = [this, margin = crops.margin()](int i) {
    image::ImageSource source;
    source.source = image::PictureRegion{
        &picture_, CropOf(found_.detections(i).box(), margin,
                          {found_.image_height(), found_.image_width()})};
    return source;
  };
  prediction_ = std::make_unique<Prediction>(environment_, std::move(request),
                                             this, &parent);
  prediction_->Start(absl::OkStatus());  // May destroy this object.
}

void PictureCrops::ReleaseRequest() {
  picture_ = image::RgbImage();
  memory_.Release();
}

int64_t PictureCrops::SetAnswer(int i, Answer answer) {
  v1::ClassifyResult* crop = found_.mutable_detections(i)->mutable_crop();
  *crop = std::get<v1::ClassifyResult>(std::move(answer.result));
  const int64_t bytes = crop->ByteSizeLong();
  bytes_ += bytes;
  return bytes;
}

void PictureCrops::SetError(int i, const absl::Status& error) {
  v1::ClassifyResult* crop = found_.mutable_detections(i)->mutable_crop();
  crop->Clear();  // Removes a partial answer.
  *crop->mutable_error() = server::ToRpcStatus(OfCrops(error));
}

void PictureCrops::Done(const absl::Status& status) {
  if (!status.ok() && partial_) {
    for (int i = 0; i < found_.detections_size(); ++i) SetError(i, status);
  }
  // Moves the callback out of this object first, because the callback may
  // destroy this object.
  Answered answered = std::move(answered_);
  if (!status.ok() && !partial_) return answered(OfCrops(status));
  answered(std::move(found_));
}

}  // namespace sfmamba::prediction
