#include "server/prediction/picture_crops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

#include "server/errors/error.h"

namespace sfmamba::prediction {
namespace {

// An environment in which a request may have any number of images.
PredictionEnvironment WithAnyImages(PredictionEnvironment environment) {
  environment.limits.max_images = std::numeric_limits<int>::max();
  return environment;
}

// The error in the words of the request that the crops belong to: what is wrong
// is their number, or their model.
absl::Status OfCrops(const absl::Status& status) {
  return absl::IsInvalidArgument(status)
             ? server::AtField("params.crops", status)
             : status;
}

}  // namespace

image::PixelRect CropOf(const model::Box& box, float margin,
                        const image::PictureSize& picture) {
  const float across = margin * (box.x2 - box.x1);
  const float down = margin * (box.y2 - box.y1);
  const auto cut = [](float value, int least, int most) {
    return static_cast<int>(std::clamp<float>(value, least, most));
  };
  image::PixelRect rect;
  rect.left = cut(std::floor(box.x1 - across), 0, picture.width - 1);
  rect.top = cut(std::floor(box.y1 - down), 0, picture.height - 1);
  rect.width =
      cut(std::ceil(box.x2 + across), rect.left + 1, picture.width) - rect.left;
  rect.height =
      cut(std::ceil(box.y2 + down), rect.top + 1, picture.height) - rect.top;
  return rect;
}

PictureCrops::PictureCrops(const PredictionEnvironment& environment,
                           image::RgbImage picture, server::MemoryHold memory,
                           DetectionAnswer found)
    : environment_(WithAnyImages(environment)),
      picture_(std::move(picture)),
      memory_(std::move(memory)),
      found_(std::move(found)) {}

void PictureCrops::Start(PredictionRequest request, const CropParams& crops,
                         const Prediction& parent, Answered answered) {
  answered_ = std::move(answered);
  partial_ = request.options.allow_partial_results;
  ClassifyParams& params = request.params.emplace<ClassifyParams>();
  params.top_k = crops.top_k == 0 ? 1 : crops.top_k;
  params.min_score = crops.min_score;
  params.include_embedding = crops.include_embedding;
  request.images = found_.objects.size();
  request.image = [this, margin = crops.margin](int i) {
    image::ImageSource source;
    source.source = image::PictureRegion{
        &picture_, CropOf(found_.objects[i].box, margin, found_.picture)};
    return source;
  };
  prediction_ = std::make_unique<Prediction>(environment_, std::move(request),
                                             this, &parent);
  prediction_->Start(absl::OkStatus());  // May destroy this.
}

void PictureCrops::ReleaseRequest() {
  picture_ = image::RgbImage();
  memory_.Release();
}

int64_t PictureCrops::SetAnswer(int i, Answer answer) {
  ClassificationAnswer& crop = found_.objects[i].crop.emplace().answer;
  crop = std::get<ClassificationAnswer>(std::move(answer));
  const int64_t bytes = sizeof(Category) * crop.categories.size() +
                        sizeof(float) * crop.embedding.size();
  bytes_ += bytes;
  return bytes;
}

void PictureCrops::SetError(int i, const absl::Status& error) {
  found_.objects[i].crop.emplace().error = OfCrops(error);
}

void PictureCrops::Done(const absl::Status& status) {
  if (!status.ok() && partial_) {
    for (size_t i = 0; i < found_.objects.size(); ++i) SetError(i, status);
  }
  Answered answered = std::move(answered_);  // It may destroy this.
  if (!status.ok() && !partial_) return answered(OfCrops(status));
  answered(std::move(found_));
}

}  // namespace sfmamba::prediction
