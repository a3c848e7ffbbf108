#include "tests/server/ceiling/requests.h"

#include <cstdint>
#include <cstdio>  // jpeglib.h needs FILE and size_t.

#include "absl/strings/str_cat.h"
#include "inference/grpc_service.pb.h"
#include "jpeglib.h"
#include "sfmamba/v1/vision.pb.h"
#include "tests/server/ceiling/null_server.h"
#include "tests/server/picture.h"

namespace sfmamba {
namespace {

std::string TensorBytes() {
  return std::string(3 * kNullModelSide * kNullModelSide, 'x');
}

}  // namespace

std::string TensorRequest(bool valid) {
  v1::ClassifyRequest request;
  request.set_model("null");
  v1::Tensor* tensor = request.add_images()->mutable_tensor();
  tensor->set_data_type(v1::Tensor::UINT8);
  for (int size : {3, kNullModelSide, kNullModelSide}) tensor->add_shape(size);
  tensor->set_data(TensorBytes());
  if (!valid) request.mutable_params()->set_top_k(-1);
  return request.SerializeAsString();
}

std::string InferRequest() {
  inference::ModelInferRequest request;
  request.set_model_name("null");
  auto* input = request.add_inputs();
  input->set_name("image");
  input->set_datatype("UINT8");
  for (int size : {1, 3, kNullModelSide, kNullModelSide}) {
    input->add_shape(size);
  }
  auto* output = request.add_outputs();
  output->set_name("logits");
  (*output->mutable_parameters())["classification"].set_int64_param(5);
  request.add_raw_input_contents(TensorBytes());
  return request.SerializeAsString();
}

std::string HttpInferRequest() {
  const std::string tensor = TensorBytes();
  const std::string json = absl::StrCat(
      R"({"inputs":[{"name":"image","datatype":"UINT8","shape":[1,3,)",
      kNullModelSide, ",", kNullModelSide,
      R"(],"parameters":{"binary_data_size":)", tensor.size(),
      R"(}}],"outputs":[{"name":"logits","parameters":)",
      R"({"classification":5,"binary_data":true}}]})");
  return absl::StrCat(
      "POST /v2/models/null/infer HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/octet-stream\r\n"
      "Inference-Header-Content-Length: ",
      json.size(), "\r\nContent-Length: ", json.size() + tensor.size(),
      "\r\n\r\n", json, tensor);
}

std::string Photograph(int width, int height) {
  image::RgbImage image = server::Gradient(width, height);
  uint32_t noise = 1;
  for (uint8_t& byte : image.data) {
    noise = noise * 1664525u + 1013904223u;
    byte = byte * 7 / 8 + (noise >> 28);
  }
  return server::EncodeJpeg(
      width, height, 3, image.data.data(),
      [](jpeg_compress_struct& c) { jpeg_set_quality(&c, 85, TRUE); });
}

std::string JpegRequest(int width, int height) {
  v1::ClassifyRequest request;
  request.set_model("null");
  request.add_images()->set_encoded(Photograph(width, height));
  return request.SerializeAsString();
}

// Returns a request with a picture of a few kilobytes.
std::string SmallRequest() {
  v1::ClassifyRequest request;
  request.set_model("null");
  v1::PixelBuffer* pixels = request.add_images()->mutable_pixels();
  pixels->set_width(48);
  pixels->set_height(48);
  pixels->set_format(v1::PixelBuffer::GRAY8);
  pixels->set_data(std::string(48 * 48, 'x'));
  return request.SerializeAsString();
}

}  // namespace sfmamba
