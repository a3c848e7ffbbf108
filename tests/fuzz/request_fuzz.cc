// Fuzzes a serialized request. It must fail to parse, be refused with a reason,
// or give inputs of the predicted size.
#include <algorithm>
#include <cstdint>

#include "google/protobuf/stubs/logging.h"
#include "server/api/vision/from_proto.h"
#include "server/errors/error.h"
#include "server/image/image_input.h"
#include "server/prediction/prediction_request.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/task_handler.h"
#include "tests/fuzz/check.h"

namespace sfmamba {
namespace {

constexpr int kClasses = 10;

prediction::RequestLimits SmallLimits() {
  prediction::RequestLimits limits;
  limits.max_images = 8;
  limits.image.max_bytes = 1 << 16;
  limits.image.max_pixels = 1 << 14;
  limits.image.max_side = 1 << 12;
  return limits;
}

// Returns a model with small inputs. Inputs of detectors and segmenters have
// the picture's aspect ratio.
repository::ModelDirectory SmallModel(model::VisionTask task) {
  repository::ModelDirectory directory;
  directory.labels.resize(kClasses);
  model::ModelConfig& config = directory.config;
  config.task = task;
  config.num_classes = kClasses;
  config.image_size = 2;
  if (task == model::VisionTask::kClassification) return directory;
  config.resize = model::Resize::kKeepRatio;
  config.short_side = 3;
  config.long_side = 5;
  return directory;
}

void CheckRefused(const absl::Status& status) {
  Check(status.code() == absl::StatusCode::kInvalidArgument,
        "a request is refused as an invalid argument");
  Check(!server::GetErrorDetail(status).reason.empty(), "with a reason");
}

void CheckInput(const image::ImageBuffer& made,
                const prediction::ImageFacts& facts,
                const model::ModelConfig& model) {
  Check(made.height == facts.input.height && made.width == facts.input.width,
        "an input has the size that was foreseen");
  // If a JPEG is larger than a classifier's input, the decoder may already
  // reduce its size. The decoded picture is then smaller than `seen`, which is
  // the size in the file's header.
  const image::PictureSize& seen = facts.seen;
  Check(
      made.original_height <= seen.height && made.original_width <= seen.width,
      "no picture is larger than was foreseen");
  Check(model.resize != model::Resize::kKeepRatio ||
            (made.original_height == seen.height &&
             made.original_width == seen.width),
        "one that keeps its ratio is as large");
  Check(made.bytes() == facts.input_bytes, "and the memory that was foreseen");
  Check(made.pixels.size() + made.values.size() ==
            static_cast<size_t>(3 * facts.input.pixels()),
        "an input is whole");
  Check(facts.input.pixels() <= (model.resize == model::Resize::kKeepRatio
                                     ? model.short_side * model.long_side
                                     : model.image_size * model.image_size),
        "an input is not larger than the model's");
}

void CheckImage(const prediction::PredictionRequest& request, int i,
                const model::ModelConfig& model) {
  const absl::StatusOr<image::ImageSource> source = request.image(i);
  if (!source.ok()) return CheckRefused(source.status());
  const prediction::RequestLimits limits = SmallLimits();
  prediction::ImageFacts facts;
  const absl::Status status =
      prediction::ValidateImage(*source, model, limits, &facts);
  if (!status.ok()) return CheckRefused(status);
  Check(facts.decode_bytes >= facts.input_bytes, "decoding makes the input");
  const absl::StatusOr<image::PreparedInput> input =
      image::MakeInput(*source, model, request.options.resize, limits.image);
  if (!input.ok()) return CheckRefused(input.status());
  CheckInput(input->image, facts, model);
}

template <typename Request>
void Fuzz(absl::string_view message, model::VisionTask task) {
  static const repository::ModelDirectory& model =
      *new repository::ModelDirectory(SmallModel(task));
  Request request;
  if (!request.ParseFromArray(message.data(), message.size())) return;
  const prediction::PredictionRequest translated = api::FromProto(request);
  absl::Status status =
      prediction::ValidateRequest(translated, model.config, SmallLimits());
  if (status.ok()) {
    status = std::visit(
        [](const auto& params) {
          return prediction::MakeHandler(params)->CheckParams(model);
        },
        translated.params);
  }
  status.Update(prediction::ValidateRequestId(translated.request_id));
  if (!status.ok()) CheckRefused(status);
  // Images are also checked if the request is refused, so that more images are
  // checked.
  const int images = std::min(translated.images, SmallLimits().max_images);
  for (int i = 0; i < images; ++i) CheckImage(translated, i, model.config);
}

}  // namespace
}  // namespace sfmamba

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer& silencer =
      *new google::protobuf::LogSilencer();
  (void)silencer;
  sfmamba::Input input(data, size);
  switch (input.Below(3)) {
    case 0:
      sfmamba::Fuzz<sfmamba::v1::ClassifyRequest>(
          input.bytes(), sfmamba::model::VisionTask::kClassification);
      break;
    case 1:
      sfmamba::Fuzz<sfmamba::v1::DetectRequest>(
          input.bytes(), sfmamba::model::VisionTask::kDetection);
      break;
    default:
      sfmamba::Fuzz<sfmamba::v1::SegmentRequest>(
          input.bytes(), sfmamba::model::VisionTask::kSegmentation);
  }
  return 0;
}
