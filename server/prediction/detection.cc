#include "server/prediction/detection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/coco_rle.h"
#include "base/png_encoder.h"

namespace sfmamba::prediction {
namespace {

// Of masks in one piece; pasting and encoding a pixel takes up to 2 ns.
constexpr double kPiecePixels = 4e6;
constexpr absl::Duration kPerMaskPixel = absl::Nanoseconds(2);
constexpr absl::Duration kPerObject = absl::Nanoseconds(200);

// The box in the oriented picture, clipped to it.
model::Box InPicture(const model::Box& box, const image::PictureFrame& frame) {
  const float width = frame.picture.width, height = frame.picture.height;
  return {std::clamp(frame.left + box.x1, 0.f, width),
          std::clamp(frame.top + box.y1, 0.f, height),
          std::clamp(frame.left + box.x2, 0.f, width),
          std::clamp(frame.top + box.y2, 0.f, height)};
}

// The box rounded outwards, at least one pixel each way.
image::PixelRect Outwards(const model::Box& box) {
  image::PixelRect rect;
  rect.left = std::floor(box.x1);
  rect.top = std::floor(box.y1);
  rect.width = std::max<int>(1, std::ceil(box.x2) - rect.left);
  rect.height = std::max<int>(1, std::ceil(box.y2) - rect.top);
  return rect;
}

// The part of `mask`, of what the model saw, inside `rect` of the picture.
absl::StatusOr<std::string> EncodePngCrop(const model::InstanceMask& mask,
                                          const image::PictureFrame& frame,
                                          const image::PixelRect& rect) {
  // The mask's place inside the rectangle.
  const int left = frame.left + mask.left - rect.left;
  const int top = frame.top + mask.top - rect.top;
  const int begin = std::max(left, 0);
  const int end = std::min(left + mask.width, rect.width);
  return base::EncodeGreyPng(
      rect.width, rect.height, 1, [&](int y, uint8_t* row) {
        std::memset(row, 0, (rect.width + 7) / 8);
        if (y < top || y >= top + mask.height) return;
        const uint8_t* pixels = &mask.data[size_t{1} * (y - top) * mask.width];
        for (int x = begin; x < end; ++x) {
          if (pixels[x - left] != 0) row[x / 8] |= 0x80 >> x % 8;
        }
      });
}

absl::Status FillMask(const model::InstanceMask& mask,
                      const image::PictureFrame& frame,
                      DetectParams::MaskEncoding encoding,
                      DetectedObject* object) {
  if (encoding == DetectParams::MaskEncoding::kPngCrop) {
    absl::StatusOr<std::string> png =
        EncodePngCrop(mask, frame, Outwards(object->box));
    if (!png.ok()) return png.status();
    object->mask = PngCrop{*std::move(png)};
  } else {
    object->mask =
        CocoRle{frame.picture.height, frame.picture.width,
                base::EncodeRle(mask, frame.left, frame.top,
                                frame.picture.height, frame.picture.width)};
  }
  return absl::OkStatus();
}

// Whether masks were asked for and the model has any.
bool WantsMasks(const DetectParams& params,
                const repository::ModelDirectory& model) {
  return params.mask_encoding != DetectParams::MaskEncoding::kNone &&
         model.config.detector.masks;
}

int64_t MaskBytes(const DetectedObject& object) {
  if (const auto* rle = std::get_if<CocoRle>(&object.mask)) {
    return rle->counts.size();
  }
  if (const auto* png = std::get_if<PngCrop>(&object.mask)) {
    return png->bytes.size();
  }
  return 0;
}

// A piece is some objects whose masks have at most kPiecePixels pixels, or one
// object.
class DetectionEncoder final : public AnswerEncoder {
 public:
  DetectionEncoder(DetectParams::MaskEncoding encoding,
                   const repository::ModelDirectory& model,
                   model::Detections result, const image::PictureFrame& frame)
      : encoding_(encoding),
        model_(model),
        frame_(frame),
        detections_(std::move(result.detections)) {
    answer_.picture = frame.picture;
    answer_.objects.reserve(detections_.size());
    PlanPiece();
  }

  bool done() const override { return answer_.objects.size() >= piece_end_; }
  absl::Duration NextCost() const override { return piece_cost_; }
  absl::Status EncodeNext() override {
    while (answer_.objects.size() < piece_end_) {
      const absl::Status status = EncodeObject();
      if (!status.ok()) return status;
    }
    PlanPiece();
    return absl::OkStatus();
  }
  int64_t bytes() const override { return bytes_; }
  Answer Take() override { return std::move(answer_); }

 private:
  // Sets the end of the next piece, which is empty once all is done.
  void PlanPiece() {
    const size_t begin = answer_.objects.size();
    double pixels = 0;
    for (piece_end_ = begin; piece_end_ < detections_.size(); ++piece_end_) {
      const double more = MaskPixels(detections_[piece_end_]);
      if (piece_end_ > begin && pixels + more > kPiecePixels) break;
      pixels += more;
    }
    piece_cost_ = (piece_end_ - begin) * kPerObject + pixels * kPerMaskPixel;
  }
  double MaskPixels(const model::Detection& detection) const {
    if (encoding_ == DetectParams::MaskEncoding::kNone) return 0;
    const model::Box box = InPicture(detection.box, frame_);
    return double{box.x2 - box.x1} * (box.y2 - box.y1);
  }
  absl::Status EncodeObject() {
    const model::Detection& detection = detections_[answer_.objects.size()];
    DetectedObject& object = answer_.objects.emplace_back();
    object.box = InPicture(detection.box, frame_);
    object.class_id = detection.class_id;
    object.label = model_.labels[detection.class_id];
    object.score = detection.score;
    if (encoding_ == DetectParams::MaskEncoding::kNone) return absl::OkStatus();
    const absl::Status status =
        FillMask(detection.mask(), frame_, encoding_, &object);
    bytes_ += MaskBytes(object);
    return status;
  }

  const DetectParams::MaskEncoding encoding_;
  const repository::ModelDirectory& model_;
  const image::PictureFrame frame_;
  const std::vector<model::Detection> detections_;
  DetectionAnswer answer_;  // Its objects are those encoded so far.
  int64_t bytes_ = 0;       // Of their masks.
  size_t piece_end_ = 0;    // Exclusive, of the next piece.
  absl::Duration piece_cost_;
};

}  // namespace

absl::Status DetectionHandler::CheckParams(
    const repository::ModelDirectory& model) const {
  return ValidateParams(params_, model.labels.size());
}

int64_t DetectionHandler::ResultBytes(const repository::ModelDirectory& model,
                                      const ImageFacts& image) const {
  // A byte a pixel of the mask that is being encoded.
  return WantsMasks(params_, model) ? image.seen.pixels() : 0;
}

void DetectionHandler::FillTask(const repository::ModelDirectory& model,
                                batching::BatchTask* task) const {
  model::DetectionOptions& options = task->detection;
  options.score_threshold = params_.score_threshold;
  options.nms_iou_threshold = params_.nms_iou_threshold;
  options.max_detections = params_.max_detections;
  options.classes.assign(params_.class_filter.begin(),
                         params_.class_filter.end());
  std::sort(options.classes.begin(), options.classes.end());
  options.classes.erase(
      std::unique(options.classes.begin(), options.classes.end()),
      options.classes.end());
  options.class_agnostic_nms = params_.class_agnostic_nms;
  options.masks = WantsMasks(params_, model);
}

std::unique_ptr<AnswerEncoder> DetectionHandler::MakeEncoder(
    const repository::ModelDirectory& model, model::Result result,
    const image::PictureFrame& frame) const {
  return std::make_unique<DetectionEncoder>(
      WantsMasks(params_, model) ? params_.mask_encoding
                                 : DetectParams::MaskEncoding::kNone,
      model, std::get<model::Detections>(std::move(result)), frame);
}

absl::string_view DetectionHandler::SmallerResponse() const {
  return "fewer images, a smaller max_detections, a higher score_threshold, or "
         "another mask_encoding";
}

}  // namespace sfmamba::prediction
