// This file implements the Detect task. It validates the request's parameters
// and encodes the model's results.
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/functional/any_invocable.h"
#include "server/prediction/mask_encoder.h"
#include "server/prediction/merge_detections.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/task_handler.h"
#include "server/prediction/tiles.h"

namespace sfmamba::prediction {
namespace {

// Expected times for encoding detected objects. An object takes kPerObject
// plus the time for its mask. A mask is encoded line by line. If the mask
// becomes a PNG, a line is a row of pixels. If the mask becomes a run-length
// encoding, a line is a column of pixels. The time for a mask is the sum of:
// - kPerLine for each line,
// - kPerPngByte for every 8 pixels of a line, in a PNG only,
// - kPerEdge for each edge, which is a place where a set and an unset pixel
//   meet. Only noisy masks have many edges.
constexpr absl::Duration kPerLine = absl::Nanoseconds(150);
constexpr absl::Duration kPerPngByte = absl::Nanoseconds(2);
constexpr absl::Duration kPerEdge = absl::Nanoseconds(20);
constexpr absl::Duration kPerObject = absl::Nanoseconds(500);
// A step stops encoding when the expected time of its work has reached this
// duration.
constexpr absl::Duration kPiece = absl::Milliseconds(4);
// Expected times for merging the detections of all tiles. kPerSorted is the
// time to collect and sort all detections, divided by their number.
// kPerComparison is the time to compare two detections.
constexpr absl::Duration kPerSorted = absl::Nanoseconds(200);
constexpr absl::Duration kPerComparison = absl::Nanoseconds(3);
// The size in bytes of a mask in the model's result.
constexpr int64_t kMaskBytes = 28 * 28 * sizeof(float);
// The number of mask lines that one call of EncodeLines() encodes. The first
// call for a mask encodes kFirstLines. Each further call encodes as many lines
// as fit into the remaining time of the step, but at least kFewestLines and at
// most kMostLines.
constexpr int kFirstLines = 256, kFewestLines = 64, kMostLines = 2048;

// Converts a box to pixels of the oriented picture and clips the box. `box` is
// in pixels of the region that the model saw, which may be a crop.
model::Box InPicture(const model::Box& box, const image::PictureFrame& frame) {
  const float width = frame.picture.width, height = frame.picture.height;
  return {std::clamp(frame.left + box.x1, 0.f, width),
          std::clamp(frame.top + box.y1, 0.f, height),
          std::clamp(frame.left + box.x2, 0.f, width),
          std::clamp(frame.top + box.y2, 0.f, height)};
}

// Returns the expected time to encode one line (row or column) of a mask,
// without the time for edges. The mask is `width` pixels wide.
absl::Duration PerLine(v1::DetectParams::MaskEncoding encoding, int width) {
  if (encoding != v1::DetectParams::PNG_CROP) return kPerLine;
  return kPerLine + width / 8 * kPerPngByte;
}

// Returns the expected time to encode a whole mask, without the time for edges.
absl::Duration PerMask(v1::DetectParams::MaskEncoding encoding, int width,
                       int height) {
  const bool by_rows = encoding == v1::DetectParams::PNG_CROP;
  return (by_rows ? height : width) * PerLine(encoding, width);
}

// Returns true if the request asks for masks and the model computes them.
bool WantsMasks(const v1::DetectParams& params,
                const repository::ModelDirectory& model) {
  return params.mask_encoding() !=
             v1::DetectParams::MASK_ENCODING_UNSPECIFIED &&
         model.config.detector.masks;
}

// Encodes the detected objects of one image. A step adds some objects to the
// result, encodes some lines of a mask, or does both.
class DetectionEncoder final : public AnswerEncoder {
 public:
  DetectionEncoder(v1::DetectParams::MaskEncoding encoding,
                   const repository::ModelDirectory& model,
                   model::Detections result, const image::PictureFrame& frame)
      : encoding_(encoding),
        model_(model),
        frame_(frame),
        detections_(std::move(result.detections)) {
    answer_.set_image_width(frame.picture.width);
    answer_.set_image_height(frame.picture.height);
    for (const model::Detection& detection : detections_) {
      left_ += kPerObject;
      if (encoding != v1::DetectParams::MASK_ENCODING_UNSPECIFIED) {
        const model::InstanceMask::Bounds bounds = detection.mask->bounds();
        left_ += PerMask(encoding, bounds.width, bounds.height);
      }
    }
  }

  bool done() const override {
    return mask_ == nullptr && BegunObjects() == detections_.size();
  }
  absl::Duration NextCost() const override {
    return std::clamp(left_, kPerObject, kPiece);
  }
  absl::Status EncodeNext() override {
    absl::Duration spent;
    while (!done() && spent < kPiece) {
      if (mask_ == nullptr) {
        BeginObject();
        spent += kPerObject;
        left_ -= kPerObject;
      } else {
        const absl::StatusOr<absl::Duration> cost = EncodeLines(kPiece - spent);
        if (!cost.ok()) return cost.status();
        spent += *cost;
      }
    }
    return absl::OkStatus();
  }
  int64_t bytes() const override {
    return bytes_ + (mask_ == nullptr ? 0 : mask_->bytes());
  }
  Answer Take() override { return {std::move(answer_), {}}; }

 private:
  size_t BegunObjects() const { return answer_.detections_size(); }

  // Adds the next object to the result, without its mask. EncodeLines() encodes
  // the mask afterwards.
  void BeginObject() {
    const model::Detection& detection = detections_[BegunObjects()];
    v1::Detection* object = answer_.add_detections();
    const model::Box box = InPicture(detection.box, frame_);
    object->mutable_box()->set_x_min(box.x1);
    object->mutable_box()->set_y_min(box.y1);
    object->mutable_box()->set_x_max(box.x2);
    object->mutable_box()->set_y_max(box.y2);
    object->set_class_id(detection.class_id);
    object->set_label(model_.labels[detection.class_id]);
    object->set_score(detection.score);
    if (encoding_ != v1::DetectParams::MASK_ENCODING_UNSPECIFIED) {
      mask_ = MakeMaskEncoder(encoding_, detection.mask, frame_, box);
      without_edges_ = PerLine(encoding_, detection.mask->bounds().width);
      per_line_ = absl::ZeroDuration();
    }
  }
  // Encodes the next lines of the current mask. The first call for a mask
  // encodes up to kFirstLines lines, because the time per line is not known
  // yet. Later calls choose the number of lines so that encoding takes about
  // `time`. Returns the expected time for the encoded lines.
  absl::StatusOr<absl::Duration> EncodeLines(absl::Duration time) {
    int lines = kFirstLines;
    if (per_line_ > absl::ZeroDuration()) {
      lines = std::clamp<int64_t>(time / per_line_, kFewestLines, kMostLines);
    }
    lines = std::min(lines, mask_->lines_left());
    const absl::StatusOr<int64_t> edges = mask_->Encode(lines);
    if (!edges.ok()) return edges.status();
    left_ -= lines * without_edges_;
    if (mask_->lines_left() == 0) {
      bytes_ += mask_->bytes();
      mask_->Take(answer_.mutable_detections(BegunObjects() - 1));
      mask_ = nullptr;
    }
    const absl::Duration cost = lines * without_edges_ + *edges * kPerEdge;
    if (lines > 0) per_line_ = cost / lines;
    return cost;
  }

  const v1::DetectParams::MaskEncoding encoding_;
  const repository::ModelDirectory& model_;
  const image::PictureFrame frame_;
  const std::vector<model::Detection> detections_;
  // The answer so far. While mask_ is set, the last object in answer_ has no
  // mask yet.
  v1::DetectResult answer_;
  std::unique_ptr<MaskEncoder> mask_;  // Encodes the last object's mask.
  absl::Duration without_edges_;       // The result of PerLine() for mask_.
  // The expected time per line of mask_, with edges. Zero until the first lines
  // are encoded.
  absl::Duration per_line_;
  int64_t bytes_ = 0;  // The size in bytes of the masks in answer_.
  // The expected time of the remaining work, without the time for edges.
  absl::Duration left_;
};

// Merges the detections of all tiles, then encodes the merged detections.
class TilesEncoder final : public AnswerEncoder {
 public:
  using Encode = absl::AnyInvocable<std::unique_ptr<AnswerEncoder>(
      model::Detections merged)>;

  // `tiles` contains the detections of each tile. The tiles are the parts of
  // `image`, which must outlive this object.
  TilesEncoder(std::vector<model::Detections> tiles, const ImageFacts& image,
               const MergeRule& rule, Encode encode)
      : tiles_(std::move(tiles)),
        image_(image),
        rule_(rule),
        encode_(std::move(encode)) {}

  bool done() const override { return merged_ != nullptr && merged_->done(); }
  absl::Duration NextCost() const override {
    if (merged_ != nullptr) return merged_->NextCost();
    if (!merger_.has_value()) return Count() * kPerSorted;
    return std::min(kPiece, merger_->left() * merger_->left() * kPerComparison);
  }
  absl::Status EncodeNext() override {
    if (merged_ != nullptr) return merged_->EncodeNext();
    if (!merger_.has_value()) {
      merger_.emplace(TakeAll(), rule_);
      return absl::OkStatus();
    }
    absl::Duration spent;
    while (!merger_->done() && spent < kPiece) {
      spent += merger_->left() * kPerComparison;
      merger_->MergeNext();
    }
    if (merger_->done()) merged_ = encode_({merger_->Take()});
    return absl::OkStatus();
  }
  int64_t bytes() const override {
    return merged_ == nullptr ? 0 : merged_->bytes();
  }
  Answer Take() override { return merged_->Take(); }

 private:
  int64_t Count() const {
    int64_t count = 0;
    for (const model::Detections& tile : tiles_) {
      count += tile.detections.size();
    }
    return count;
  }
  // Returns the detections of all tiles. Converts their coordinates from pixels
  // of a tile to pixels of the picture.
  std::vector<model::Detection> TakeAll() {
    std::vector<model::Detection> all;
    all.reserve(Count());
    for (size_t i = 0; i < tiles_.size(); ++i) {
      const image::PixelRect& region = image_.parts[i].region;
      Shift(region.left, region.top, &tiles_[i]);
      std::vector<model::Detection>& own = tiles_[i].detections;
      std::move(own.begin(), own.end(), std::back_inserter(all));
    }
    return all;
  }

  std::vector<model::Detections> tiles_;
  const ImageFacts& image_;
  const MergeRule rule_;
  Encode encode_;
  std::optional<DetectionMerger> merger_;  // Not set until the first step.
  std::unique_ptr<AnswerEncoder> merged_;  // Null while detections are merged.
};

// Collects the detections of each tile.
class TileCollector final : public PartCollector {
 public:
  TileCollector(const ImageFacts& image, const MergeRule& rule,
                const repository::ModelDirectory& model,
                const TaskHandler& handler)
      : image_(image),
        rule_(rule),
        model_(model),
        handler_(handler),
        tiles_(image.parts.size()) {}

  void Add(int i, model::Result result) override {
    tiles_[i] = std::get<model::Detections>(std::move(result));
  }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const image::PictureFrame& frame) override {
    return std::make_unique<TilesEncoder>(
        std::move(tiles_), image_, rule_,
        [&model = model_, &handler = handler_,
         frame](model::Detections merged) {
          return handler.MakeEncoder(model, std::move(merged), frame);
        });
  }

 private:
  const ImageFacts& image_;
  const MergeRule rule_;
  const repository::ModelDirectory& model_;
  const TaskHandler& handler_;
  std::vector<model::Detections> tiles_;
};

class DetectionHandler final : public TaskHandler {
 public:
  explicit DetectionHandler(const v1::DetectParams& params) : params_(params) {}

  model::VisionTask task() const override {
    return model::VisionTask::kDetection;
  }
  absl::Status CheckParams(
      const repository::ModelDirectory& model) const override {
    const absl::Status status = ValidateParams(params_, model.labels.size());
    if (!status.ok() || !params_.has_tiles()) return status;
    return ValidateTiles(params_.tiles());
  }
  absl::Status Divide(const repository::ModelDirectory& model, int most,
                      ImageFacts* image) const override {
    if (!params_.has_tiles()) return absl::OkStatus();
    return DivideIntoTiles(params_.tiles(), model.config, most, image);
  }
  std::unique_ptr<PartCollector> MakeCollector(
      const repository::ModelDirectory& model,
      const ImageFacts& image) const override {
    MergeRule rule;
    const v1::Tiles& tiles = params_.tiles();
    rule.merge = tiles.merge();
    rule.match = tiles.match();
    if (tiles.has_match_threshold()) rule.threshold = tiles.match_threshold();
    rule.class_agnostic = params_.class_agnostic_nms();
    rule.max_detections = MaxObjects(model);
    return std::make_unique<TileCollector>(image, rule, model, *this);
  }
  int64_t ResultBytes(const repository::ModelDirectory& model,
                      const ImageFacts& image) const override {
    // The model's result contains each mask as 28 x 28 probabilities. A mask
    // therefore takes kMaskBytes, independent of the size of the picture. If
    // there are no masks, only an image with several tiles is counted. The
    // boxes and scores of a single model input are negligible.
    const int64_t per_object = WantsMasks(params_, model) ? kMaskBytes
                               : image.inputs() > 1 ? sizeof(model::Detection)
                                                    : 0;
    return image.inputs() * MaxObjects(model) * per_object;
  }
  absl::Duration LongestAnswer(const repository::ModelDirectory& model,
                               const ImageFacts& image) const override {
    absl::Duration per_mask;
    if (WantsMasks(params_, model)) {
      per_mask =
          PerMask(params_.mask_encoding(), image.seen.width, image.seen.height);
    }
    const int64_t most = MaxObjects(model);
    const absl::Duration merging =
        image.parts.empty() ? absl::ZeroDuration()
                            : most * most * image.inputs() * kPerComparison;
    return most * (kPerObject + per_mask) + merging;
  }
  void FillTask(const repository::ModelDirectory& model,
                batching::BatchTask* task) const override {
    model::DetectionOptions options;
    if (params_.has_score_threshold()) {
      options.score_threshold = params_.score_threshold();
    }
    if (params_.has_nms_iou_threshold()) {
      options.nms_iou_threshold = params_.nms_iou_threshold();
    }
    options.max_detections = params_.max_detections();
    const absl::btree_set<int> classes(params_.class_filter().begin(),
                                       params_.class_filter().end());
    options.classes.assign(classes.begin(), classes.end());
    options.class_agnostic_nms = params_.class_agnostic_nms();
    options.masks = WantsMasks(params_, model);
    task->options = std::move(options);
  }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const override {
    return std::make_unique<DetectionEncoder>(
        WantsMasks(params_, model)
            ? params_.mask_encoding()
            : v1::DetectParams::MASK_ENCODING_UNSPECIFIED,
        model, std::get<model::Detections>(std::move(result)), frame);
  }
  absl::string_view SmallerResponse() const override {
    return "fewer images, a smaller max_detections, a higher score_threshold, "
           "or another mask_encoding";
  }

 private:
  int64_t MaxObjects(const repository::ModelDirectory& model) const {
    return params_.max_detections() > 0 ? params_.max_detections()
                                        : model.config.detector.max_detections;
  }

  const v1::DetectParams params_;
};

}  // namespace

std::unique_ptr<const TaskHandler> MakeHandler(const v1::DetectParams& params) {
  return std::make_unique<DetectionHandler>(params);
}

}  // namespace sfmamba::prediction
