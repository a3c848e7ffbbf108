#ifndef SFMAMBA_SERVER_PREDICTION_PICTURE_CROPS_H_
#define SFMAMBA_SERVER_PREDICTION_PICTURE_CROPS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/image/image.h"
#include "server/prediction/answer.h"
#include "server/prediction/prediction.h"
#include "server/prediction/prediction_request.h"
#include "server/shares/memory_budget.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::prediction {

// Returns the pixels to cut out for `box`. First extends the box on each side
// by `margin` times the box's width or height. Then rounds the sides outwards
// and clips the result to the picture. The result has at least one pixel.
image::PixelRect CropOf(const v1::BoundingBox& box, float margin,
                        const image::PictureSize& picture);

// Classifies the objects detected in one picture. Creates a separate
// prediction, whose images are the crops. Like any other request, this
// prediction must be admitted and may be refused. The picture stays in memory
// until the model inputs of all crops are created.
//
// Thread-compatible. The object must live until `answered` is called.
// `answered` may destroy the object.
class PictureCrops final : public ResponseWriter {
 public:
  // Called exactly once. If the request succeeded, the argument contains the
  // objects with the classes of their crops. If it failed, the argument is the
  // error. If partial results are allowed, the request never fails, and each
  // failed crop contains its own error.
  using Answered = absl::AnyInvocable<void(absl::StatusOr<v1::DetectResult>)>;

  // `found` contains the detected objects, at least one. `memory` accounts for
  // the memory of `picture`.
  PictureCrops(const PredictionEnvironment& environment,
               image::RgbImage picture, server::MemoryHold memory,
               v1::DetectResult found);

  // Starts the prediction that classifies the crops. Must be called once.
  // `request` contains everything except the images and the parameters.
  // `parent` is the prediction of the detection request. `parent` must outlive
  // this object.
  void Start(PredictionRequest request, const v1::Crops& crops,
             const Prediction& parent, Answered answered);

 private:
  void Start(const std::string&, int) override {}
  void ReleaseRequest() override;
  int64_t SetAnswer(int i, Answer answer) override;
  void SetError(int i, const absl::Status& error) override;
  void SetTiming(const v1::Timing&) override {}
  int64_t Bytes() const override { return bytes_; }
  void Done(const absl::Status& status) override;

  const PredictionEnvironment environment_;
  image::RgbImage picture_;    // Freed by ReleaseRequest().
  server::MemoryHold memory_;  // Accounts for picture_'s memory.
  v1::DetectResult found_;
  bool partial_ = false;
  std::atomic<int64_t> bytes_{0};
  Answered answered_;
  std::unique_ptr<Prediction> prediction_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_PICTURE_CROPS_H_
