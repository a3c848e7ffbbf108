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

// The pixels of a box that has grown by `margin` of its size at each side,
// rounded outwards and cut to the picture; at least one pixel.
image::PixelRect CropOf(const v1::BoundingBox& box, float margin,
                        const image::PictureSize& picture);

// Classifies what the objects of one picture show. The crops are the images of
// a prediction of their own, which is admitted, batched and refused as any
// other request is. The picture is held until their inputs are made.
//
// Thread-compatible. Must live until `answered` was called, which may destroy
// it.
class PictureCrops final : public ResponseWriter {
 public:
  // Gets the objects with their crops, or the error of the request as a whole.
  // If partial results are allowed, that is each crop's error instead.
  using Answered = absl::AnyInvocable<void(absl::StatusOr<v1::DetectResult>)>;

  // `found` has detections.
  PictureCrops(const PredictionEnvironment& environment,
               image::RgbImage picture, server::MemoryHold memory,
               v1::DetectResult found);

  // Starts the prediction; called once. `request` has all but the images and
  // the parameters. `parent` asks for the crops and outlives this.
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
  image::RgbImage picture_;    // Until ReleaseRequest().
  server::MemoryHold memory_;  // The picture's.
  v1::DetectResult found_;
  bool partial_ = false;
  std::atomic<int64_t> bytes_{0};
  Answered answered_;
  std::unique_ptr<Prediction> prediction_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_PICTURE_CROPS_H_
