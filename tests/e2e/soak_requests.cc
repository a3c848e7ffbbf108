#include "tests/e2e/soak_requests.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "client/inputs.h"

namespace sfmamba {
namespace {

v1::Image Encoded(const std::string& bytes) {
  v1::Image image;
  image.set_encoded(bytes);
  return image;
}

v1::Image Tensor(const v1::Model& model, v1::Tensor::DataType type, int seed) {
  return *SyntheticTensor(model, type, seed);
}

// A gradient of 80 x 60 pixels.
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

SoakRequest Request(const std::string& id, const std::string& name,
                    const std::vector<v1::Image>& images) {
  SoakRequest soak;
  soak.name = name;
  soak.request.set_model(id);
  for (const v1::Image& image : images) *soak.request.add_images() = image;
  soak.outcomes["ok"] = images.size();
  return soak;
}

SoakRequest Fails(SoakRequest soak, absl::StatusCode code, std::string reason,
                  const std::string& outcome = "error") {
  soak.code = code;
  soak.reason = std::move(reason);
  soak.outcomes = {{outcome, soak.request.images_size()}};
  return soak;
}

}  // namespace

std::vector<SoakRequest> GoodRequests(const std::string& id,
                                      const v1::Model& model,
                                      const std::string& jpeg) {
  const v1::Image fp32 = Tensor(model, v1::Tensor::FP32, 1);
  const v1::Image uint8 = Tensor(model, v1::Tensor::UINT8, 2);
  std::vector<SoakRequest> requests = {
      Request(id, "fp32 tensor", {fp32}),
      Request(id, "uint8 tensor", {uint8}),
      Request(id, "pixels", {Pixels()}),
      Request(id, "jpeg", {Encoded(jpeg)}),
      Request(id, "three images", {uint8, Pixels(), fp32}),
  };
  SoakRequest partial = Request(id, "one of two images bad, partial results",
                                {fp32, Encoded("?")});
  partial.request.mutable_options()->set_allow_partial_results(true);
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
      Fails(Request(id, "no image", {}), kInvalid, "INVALID_FIELD"),
      Fails(Request(id, "empty bytes", {Encoded("")}), kInvalid,
            "IMAGE_FORMAT_UNSUPPORTED"),
      Fails(Request(id, "text", {Encoded("hello, world")}), kInvalid,
            "IMAGE_FORMAT_UNSUPPORTED"),
      Fails(Request(id, "half a jpeg",
                    {Encoded(jpeg.substr(0, jpeg.size() / 2))}),
            kInvalid, "IMAGE_DECODE_FAILED"),
      Fails(Request(id, "one of two images bad", {good, Encoded("GIF89a")}),
            kInvalid, "IMAGE_FORMAT_UNSUPPORTED"),
      Fails(Request(id, "65 images", std::vector<v1::Image>(65, good)),
            kInvalid, "TOO_MANY_IMAGES"),
      Fails(Request(id, "a byte short", {short_tensor}), kInvalid,
            "INVALID_FIELD"),
      Fails(Request(id, "four channels", {wrong_shape}), kInvalid,
            "INVALID_FIELD"),
      Fails(Request(id, "NaN tensor", {nan}), kInvalid, "INVALID_FIELD"),
  };
  SoakRequest top_k = Request(id, "top_k -1", {good});
  top_k.request.mutable_params()->set_top_k(-1);
  requests.push_back(Fails(std::move(top_k), kInvalid, "INVALID_FIELD"));
  SoakRequest threshold = Request(id, "NaN threshold", {good});
  threshold.request.mutable_params()->set_min_score(value);
  requests.push_back(Fails(std::move(threshold), kInvalid, "INVALID_FIELD"));
  SoakRequest impatient = Request(id, "a nanosecond's wait allowed", {good});
  impatient.request.mutable_options()->mutable_max_queue_wait()->set_nanos(1);
  requests.push_back(Fails(std::move(impatient),
                           absl::StatusCode::kDeadlineExceeded,
                           "EXPIRED_IN_QUEUE", "expired"));
  for (const char* unknown : {"no_such_model", "models/x/versions/1"}) {
    SoakRequest soak = Fails(Request(unknown, unknown, {good}),
                             absl::StatusCode::kNotFound, "MODEL_NOT_FOUND");
    soak.outcomes.clear();
    soak.counts_for_model = false;
    requests.push_back(std::move(soak));
  }
  return requests;
}

}  // namespace sfmamba
