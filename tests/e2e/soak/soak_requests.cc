#include "tests/e2e/soak/soak_requests.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "client/commands/inputs.h"

namespace sfmamba {
namespace {

v1::Image Encoded(const std::string& bytes) {
  v1::Image image;
  image.set_encoded(bytes);
  return image;
}

v1::Image Tensor(const v1::Model& model, v1::Tensor::DataType type, int seed) {
  return *client::SyntheticTensor(model, type, seed);
}

// Returns a gradient of 80 x 60 pixels.
v1::Image Pixels() {
  v1::Image image;
  v1::PixelBuffer& pixels = *image.mutable_pixels();
  pixels.set_width(80);
  pixels.set_height(60);
  pixels.set_format(v1::PixelBuffer::RGB8);
  for (int i = 0; i < 80 * 60 * 3; ++i) {
    pixels.mutable_data()->push_back(static_cast<char>(i / 60));
  }
  return image;
}

template <typename Request = v1::ClassifyRequest>
SoakRequest Asks(const std::string& id, const std::string& name,
                 const std::vector<v1::Image>& images,
                 const std::function<void(Request*)>& change = {}) {
  Request request;
  request.set_model(id);
  for (const v1::Image& image : images) *request.add_images() = image;
  if (change) change(&request);
  SoakRequest soak;
  soak.name = name;
  soak.request = std::move(request);
  soak.outcomes["ok"] = images.size();
  soak.counts_for = id;
  return soak;
}

SoakRequest Fails(SoakRequest soak, absl::StatusCode code, std::string reason,
                  const std::string& outcome = "error") {
  soak.code = code;
  soak.reason = std::move(reason);
  const int images = std::visit(
      [](const auto& request) { return request.images_size(); }, soak.request);
  // The server counts a request with more than 64 images as one error.
  soak.outcomes = {{outcome, images > 64 ? 1 : images}};
  return soak;
}

}  // namespace

std::vector<SoakRequest> GoodRequests(const std::string& id,
                                      const v1::Model& model,
                                      const std::string& jpeg) {
  const v1::Image fp32 = Tensor(model, v1::Tensor::FP32, 1);
  const v1::Image uint8 = Tensor(model, v1::Tensor::UINT8, 2);
  std::vector<SoakRequest> requests = {
      Asks(id, "fp32 tensor", {fp32}),
      Asks(id, "uint8 tensor", {uint8}),
      Asks(id, "pixels", {Pixels()}),
      Asks(id, "jpeg", {Encoded(jpeg)}),
      Asks(id, "three images", {uint8, Pixels(), fp32}),
  };
  SoakRequest partial = Asks<v1::ClassifyRequest>(
      id, "one of two images bad, partial results", {fp32, Encoded("?")},
      [](v1::ClassifyRequest* request) {
        request->mutable_options()->set_allow_partial_results(true);
      });
  partial.outcomes = {{"ok", 1}, {"error", 1}};
  requests.push_back(std::move(partial));
  return requests;
}

std::vector<SoakRequest> BadRequests(const std::string& id,
                                     const v1::Model& model,
                                     const std::string& jpeg) {
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  const v1::Image good = Tensor(model, v1::Tensor::UINT8, 3);
  v1::Image nan = Tensor(model, v1::Tensor::FP32, 4);
  const float value = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(nan.mutable_tensor()->mutable_data()->data(), &value,
              sizeof value);
  v1::Image short_tensor = good;
  short_tensor.mutable_tensor()->mutable_data()->pop_back();
  v1::Image wrong_shape = good;
  wrong_shape.mutable_tensor()->set_shape(0, 4);

  std::vector<SoakRequest> requests = {
      Fails(Asks(id, "no image", {}), kInvalid, "INVALID_FIELD"),
      Fails(Asks(id, "empty bytes", {Encoded("")}), kInvalid,
            "IMAGE_FORMAT_UNSUPPORTED"),
      Fails(Asks(id, "text", {Encoded("hello, world")}), kInvalid,
            "IMAGE_FORMAT_UNSUPPORTED"),
      Fails(Asks(id, "half a jpeg", {Encoded(jpeg.substr(0, jpeg.size() / 2))}),
            kInvalid, "IMAGE_DECODE_FAILED"),
      Fails(Asks(id, "one of two images bad", {good, Encoded("GIF89a")}),
            kInvalid, "IMAGE_FORMAT_UNSUPPORTED"),
      Fails(Asks(id, "65 images", std::vector<v1::Image>(65, good)), kInvalid,
            "TOO_MANY_IMAGES"),
      Fails(Asks(id, "a byte short", {short_tensor}), kInvalid,
            "INVALID_FIELD"),
      Fails(Asks(id, "four channels", {wrong_shape}), kInvalid,
            "INVALID_FIELD"),
      Fails(Asks(id, "NaN tensor", {nan}), kInvalid, "INVALID_FIELD"),
  };
  requests.push_back(Fails(
      Asks<v1::ClassifyRequest>(id, "top_k -1", {good},
                                [](v1::ClassifyRequest* request) {
                                  request->mutable_params()->set_top_k(-1);
                                }),
      kInvalid, "INVALID_FIELD"));
  requests.push_back(Fails(
      Asks<v1::ClassifyRequest>(id, "NaN threshold", {good},
                                [value](v1::ClassifyRequest* request) {
                                  request->mutable_params()->set_min_score(
                                      value);
                                }),
      kInvalid, "INVALID_FIELD"));
  requests.push_back(Fails(
      Asks<v1::ClassifyRequest>(
          id, "a nanosecond's wait allowed", {good},
          [](v1::ClassifyRequest* request) {
            request->mutable_options()->mutable_max_queue_wait()->set_nanos(1);
          }),
      absl::StatusCode::kDeadlineExceeded, "EXPIRED_IN_QUEUE", "expired"));
  for (const char* unknown : {"no_such_model", "models/x/versions/1"}) {
    SoakRequest soak = Fails(Asks(unknown, unknown, {good}),
                             absl::StatusCode::kNotFound, "MODEL_NOT_FOUND");
    soak.outcomes.clear();
    soak.counts_for = "_unknown";
    requests.push_back(std::move(soak));
  }
  return requests;
}

std::vector<SoakRequest> GoodDenseRequests(const std::string& detector,
                                           const std::string& segmenter,
                                           const std::string& jpeg) {
  const std::vector<v1::Image> images = {Encoded(jpeg), Pixels()};
  return {
      Asks<v1::DetectRequest>(detector, "detect", {Pixels()}),
      Asks<v1::DetectRequest>(
          detector, "detect, with masks", images,
          [](v1::DetectRequest* request) {
            request->mutable_params()->set_score_threshold(0.01f);
            request->mutable_params()->set_max_detections(5);
            request->mutable_params()->set_mask_encoding(
                v1::DetectParams::COCO_RLE);
          }),
      Asks<v1::SegmentRequest>(segmenter, "segment", images),
      Asks<v1::SegmentRequest>(
          segmenter, "segment, run lengths and areas", {Pixels()},
          [](v1::SegmentRequest* request) {
            request->mutable_params()->set_encoding(
                v1::SegmentParams::RLE_PER_CLASS);
            request->mutable_params()->set_include_class_areas(true);
          }),
  };
}

std::vector<SoakRequest> BadDenseRequests(const std::string& detector,
                                          const std::string& segmenter,
                                          const std::string& jpeg) {
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  const v1::Image half = Encoded(jpeg.substr(0, jpeg.size() / 2));
  return {
      Fails(Asks<v1::DetectRequest>(detector, "detect in half a jpeg", {half}),
            kInvalid, "IMAGE_DECODE_FAILED"),
      Fails(Asks<v1::DetectRequest>(
                detector, "NaN score_threshold", {Pixels()},
                [](v1::DetectRequest* request) {
                  request->mutable_params()->set_score_threshold(
                      std::numeric_limits<float>::quiet_NaN());
                }),
            kInvalid, "INVALID_FIELD"),
      Fails(Asks<v1::DetectRequest>(segmenter, "detect by the segmenter",
                                    {Pixels()}),
            absl::StatusCode::kFailedPrecondition, "TASK_MISMATCH"),
      Fails(Asks<v1::SegmentRequest>(segmenter, "stretched", {Pixels()},
                                     [](v1::SegmentRequest* request) {
                                       request->mutable_options()->set_resize(
                                           v1::RequestOptions::STRETCH);
                                     }),
            kInvalid, "INVALID_FIELD"),
      Fails(Asks(detector, "classify by the detector", {Pixels()}),
            absl::StatusCode::kFailedPrecondition, "TASK_MISMATCH"),
  };
}

}  // namespace sfmamba
