// Mutations of a valid request, of a traceparent and of configurations, the
// same ones in each run. Whatever the bytes, they are refused with a reason or
// valid.
#include <cstdint>
#include <iterator>
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/textproto.h"
#include "server/image/image_input.h"
#include "server/observability/trace_context.h"
#include "server/prediction/prediction_request.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/task_handler.h"
#include "server/rpc/from_proto.h"
#include "server/server_config.h"
#include "sfmamba/v1/config.pb.h"
#include "tests/fuzz/mutator.h"

namespace sfmamba {
namespace {

constexpr int kMutants = 20000;

void FillParams(v1::ClassifyParams* params) {
  params->set_top_k(3);
  params->add_class_filter(2);
}

void FillParams(v1::DetectParams* params) {
  params->set_score_threshold(0.5f);
  params->set_nms_iou_threshold(0.25f);
  params->set_max_detections(7);
  params->add_class_filter(2);
  params->set_mask_encoding(v1::DetectParams::PNG_CROP);
}

void FillParams(v1::SegmentParams* params) {
  params->set_encoding(v1::SegmentParams::RAW_INDEX);
  params->set_output_size(v1::SegmentParams::MODEL);
  params->add_class_filter(2);
}

template <typename Request>
Request ValidRequest() {
  Request request;
  request.set_model("m");
  request.set_request_id("id");
  FillParams(request.mutable_params());
  request.mutable_options()->mutable_max_queue_wait()->set_seconds(1);
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(4);
  pixels.set_height(2);
  pixels.set_format(v1::PixelBuffer::NV12);
  pixels.set_row_stride_bytes(5);
  pixels.set_data(std::string(15, 'x'));
  v1::NormalizedRect& crop = *request.mutable_images(0)->mutable_crop();
  crop.set_x_max(0.5);
  crop.set_y_max(1);
  v1::Tensor& tensor = *request.add_images()->mutable_tensor();
  tensor.set_data_type(v1::Tensor::FP16);
  for (int size : {3, 2, 2}) tensor.add_shape(size);
  tensor.set_data(std::string(24, 'x'));
  return request;
}

// Mutants of a valid request to `model`: each is refused with a reason, or its
// images become inputs that are as large as was foreseen.
template <typename Request>
void FuzzRequests(const model::ModelConfig& model) {
  const std::string valid = ValidRequest<Request>().SerializeAsString();
  const google::protobuf::LogSilencer silencer;
  Mutator mutator;
  int refused = 0, accepted = 0;
  repository::ModelDirectory directory;
  directory.config = model;
  directory.labels.resize(10);
  for (int i = 0; i < kMutants; ++i) {
    Request request;
    if (!request.ParseFromString(mutator.Mutate(valid))) continue;
    const prediction::PredictionRequest translated = rpc::FromProto(request);
    absl::Status whole = prediction::ValidateRequest(
        translated, model, prediction::RequestLimits());
    if (whole.ok()) {
      whole = prediction::MakeTaskHandler(translated.params)
                  ->CheckParams(directory);
    }
    if (!whole.ok()) {
      EXPECT_NE(server::GetErrorDetail(whole).reason, "");
      ++refused;
    }
    for (int j = 0; j < translated.images; ++j) {
      const absl::StatusOr<image::ImageSource> source = translated.image(j);
      prediction::ImageFacts facts;
      const absl::Status status =
          source.ok() ? prediction::ValidateImage(
                            *source, model, prediction::RequestLimits(), &facts)
                      : source.status();
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_NE(server::GetErrorDetail(status).reason, "");
        ++refused;
        continue;
      }
      const absl::StatusOr<image::PreparedInput> input = image::MakeInput(
          *source, model, translated.options.resize, image::ImageLimits());
      if (!input.ok()) continue;  // Not finite.
      const image::ImageBuffer& made = input->image;
      EXPECT_EQ(made.height, facts.input.height);
      EXPECT_EQ(made.width, facts.input.width);
      EXPECT_EQ(made.original_height, facts.seen.height);
      EXPECT_EQ(made.original_width, facts.seen.width);
      EXPECT_EQ(made.bytes(), facts.input_bytes);
      EXPECT_EQ(made.pixels.size() + made.values.size(),
                3 * facts.input.pixels());
      EXPECT_LE(facts.input.pixels(),
                model.resize == model::Resize::kKeepRatio
                    ? model.short_side * model.long_side
                    : model.image_size * model.image_size);
      ++accepted;
    }
  }
  EXPECT_GT(refused, 100);  // Most mutants do not even parse.
  EXPECT_GT(accepted, kMutants / 20);
}

TEST(RequestFuzzTest, EachImageIsRefusedWithAReasonOrBecomesAnInput) {
  model::ModelConfig model;
  model.image_size = 2;
  FuzzRequests<v1::ClassifyRequest>(model);
}

TEST(RequestFuzzTest, SoIsEachImageOfADenseModel) {
  model::ModelConfig model;
  model.resize = model::Resize::kKeepRatio;
  model.short_side = 3;
  model.long_side = 5;
  FuzzRequests<v1::DetectRequest>(model);
  FuzzRequests<v1::SegmentRequest>(model);
}

TEST(RequestFuzzTest, ATraceIdIsEmptyOrWellFormed) {
  const std::string valid =
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  Mutator mutator;
  for (int i = 0; i < kMutants; ++i) {
    const std::string id = observability::TraceIdOf(mutator.Mutate(valid));
    EXPECT_TRUE(id.empty() ||
                (id.size() == 32 &&
                 id.find_first_not_of("0123456789abcdef") == std::string::npos))
        << id;
  }
}

TEST(RequestFuzzTest, AConfigurationIsRefusedOrChecked) {
  const std::string valid =
      "model_repository: 'x' port: 8001 metrics_port: 8002 drain_delay { "
      "seconds: 5 } log_level: 'info' max_image_bytes: 1000";
  Mutator mutator;
  int parsed = 0, good = 0;
  for (int i = 0; i < kMutants; ++i) {
    v1::ServerConfig config;
    if (!server::ParseTextProto("config", mutator.Mutate(valid), &config)
             .ok()) {
      continue;
    }
    ++parsed;
    good += server::Validate(server::WithDefaults(config)).ok();
  }
  EXPECT_GT(parsed, good);
  EXPECT_GT(good, 0);
}

}  // namespace
}  // namespace sfmamba
