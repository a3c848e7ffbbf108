// This file implements the Segment task. It validates the request's parameters
// and encodes the model's results.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "server/prediction/logits_map.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/segmentation_encoder.h"
#include "server/prediction/sliding/sliding_map.h"
#include "server/prediction/sliding_window.h"
#include "server/prediction/task_handler.h"

namespace sfmamba::prediction {
namespace {

// If a class map has at most kMostInBatch times as many pixels as the model
// input, a CPU computes the map within the batch, with all compute threads. A
// larger map is computed after the batch, so that it does not delay the other
// images of the batch. This limit does not apply to GPUs. A GPU computes maps
// of any size within the batch.
constexpr int kMostInBatch = 4;

// Computes the class map of a request with sliding windows. Begins when the
// logits of the first windows arrive.
class WindowCollector final : public PartCollector {
 public:
  WindowCollector(const v1::SegmentParams& params,
                  const repository::ModelDirectory& model,
                  const SlideGrid& grid, const image::PictureSize& size)
      : params_(params),
        model_(model),
        map_(grid, model.labels.size(), size, params.include_confidence_map()) {
  }

  void Add(int i, model::Result result) override {
    map_.Add(i, std::get<model::Segmentation>(std::move(result)));
  }
  int Wanted() const override { return map_.Wanted(); }
  bool CanAdvance() const override { return map_.IsReady(); }
  absl::Duration AdvanceCost() const override { return map_.NextCost(); }
  void Advance() override { map_.ComputeNext(); }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const image::PictureFrame& frame) override {
    return MakeSegmentationEncoder(params_, model_, map_.Take(), frame);
  }

 private:
  const v1::SegmentParams& params_;
  const repository::ModelDirectory& model_;
  SlidingMap map_;
};

class SegmentationHandler final : public TaskHandler {
 public:
  explicit SegmentationHandler(const v1::SegmentParams& params)
      : params_(params) {}

  model::VisionTask task() const override {
    return model::VisionTask::kSegmentation;
  }
  absl::Status CheckParams(
      const repository::ModelDirectory& model) const override {
    absl::Status status = ValidateParams(params_, model.labels.size());
    if (status.ok() && params_.has_slide()) {
      status = ValidateSlide(params_.slide(), model.config);
    }
    return status;
  }
  absl::Status Divide(const repository::ModelDirectory& model, int most,
                      ImageFacts* image) const override {
    if (!params_.has_slide()) return absl::OkStatus();
    return DivideIntoWindows(params_.slide(), model.config, most, image);
  }
  std::unique_ptr<PartCollector> MakeCollector(
      const repository::ModelDirectory& model,
      const ImageFacts& image) const override {
    return std::make_unique<WindowCollector>(params_, model, Grid(model, image),
                                             MapSize(image));
  }
  int64_t ResultBytes(const repository::ModelDirectory& model,
                      const ImageFacts& image) const override {
    const int64_t map = MapSize(image).pixels() *
                        (sizeof(uint16_t) + params_.include_confidence_map());
    if (IsAfterBatch(model, image.input, MapSize(image))) {
      return map + LogitsMap::Bytes(image.input, model.labels.size());
    }
    if (!params_.has_slide()) return map;
    return map + SlidingMap::Bytes(Grid(model, image), model.labels.size());
  }
  int64_t LeastAnswerBytes(const repository::ModelDirectory& model,
                           const ImageFacts& image) const override {
    if (params_.encoding() != v1::SegmentParams::RAW_INDEX) return 0;
    return MapSize(image).pixels() * IndexBytes(model.labels.size());
  }
  absl::Duration LongestAnswer(const repository::ModelDirectory& model,
                               const ImageFacts& image) const override {
    const absl::Duration map =
        SegmentationEncodingCost(params_, MapSize(image));
    if (IsAfterBatch(model, image.input, MapSize(image))) {
      return map + LogitsMap::Cost(MapSize(image), model.labels.size(),
                                   params_.include_confidence_map());
    }
    if (!params_.has_slide()) return map;
    return map + SlidingMap::Cost(Grid(model, image), model.labels.size(),
                                  MapSize(image));
  }
  void FillTask(const repository::ModelDirectory& model,
                batching::BatchTask* task) const override {
    const image::ImageBuffer& input = task->image;
    model::SegmentationOptions options;
    options.original_size = !IsOfModelSize();
    options.confidence = params_.include_confidence_map();
    options.logits =
        params_.has_slide() ||
        IsAfterBatch(model, {input.height, input.width},
                     {input.original_height, input.original_width});
    task->options = options;
  }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const override {
    return MakeSegmentationEncoder(
        params_, model, std::get<model::Segmentation>(std::move(result)),
        frame);
  }
  absl::string_view SmallerResponse() const override {
    return "fewer images, encoding PNG_INDEX, output_size MODEL, or no "
           "include_confidence_map";
  }

 private:
  bool IsOfModelSize() const {
    return params_.output_size() == v1::SegmentParams::MODEL;
  }
  // Returns true if the encoder must compute the class map, because the map is
  // too large to be computed within a batch on a CPU. `input` is the size of
  // the model input, and `map` is the size of the class map. Returns false if
  // the request has sliding windows, because a WindowCollector then computes
  // the map.
  bool IsAfterBatch(const repository::ModelDirectory& model,
                    const image::PictureSize& input,
                    const image::PictureSize& map) const {
    return !model.on_gpus && !params_.has_slide() && !IsOfModelSize() &&
           map.pixels() > kMostInBatch * input.pixels();
  }
  const image::PictureSize& MapSize(const ImageFacts& image) const {
    return IsOfModelSize() ? image.input : image.seen;
  }
  SlideGrid Grid(const repository::ModelDirectory& model,
                 const ImageFacts& image) const {
    return GridOf(params_.slide(), model.config, image.input);
  }

  const v1::SegmentParams params_;
};

}  // namespace

std::unique_ptr<const TaskHandler> MakeHandler(
    const v1::SegmentParams& params) {
  return std::make_unique<SegmentationHandler>(params);
}

}  // namespace sfmamba::prediction
