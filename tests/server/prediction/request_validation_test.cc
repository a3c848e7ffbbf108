// Tests the errors of invalid requests as a client receives them.

#include "server/prediction/request_validation.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/errors/error.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::prediction {
namespace {

using grpc::StatusCode;
using v1::ClassifyRequest;
using v1::ClassifyResponse;

using RequestValidationTest = server::VisionServiceTest;

struct BadRequest {
  const char* name;
  std::function<void(ClassifyRequest*)> change;
  const char* reason;
  const char* field;
};

void SetTensor(ClassifyRequest* request, std::vector<int64_t> shape,
               int64_t bytes) {
  v1::Tensor& tensor = *request->mutable_images(0)->mutable_tensor();
  tensor.set_data_type(v1::Tensor::FP32);
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  tensor.set_data(std::string(bytes, '\0'));
}

// Returns a PNG's signature and IHDR chunk. The checksum is wrong.
std::string PngHeader(uint32_t width, uint32_t height) {
  std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  for (uint32_t side : {width, height}) {
    for (int shift : {24, 16, 8, 0}) png.push_back(side >> shift);
  }
  return png + std::string("\x08\x02\0\0\0\0\0\0\0", 9);
}

const BadRequest kBadRequests[] = {
    {"no images", [](auto* r) { r->clear_images(); }, "INVALID_FIELD",
     "images"},
    {"65 images",
     [](auto* r) {
       while (r->images_size() < 65) r->add_images();
     },
     "TOO_MANY_IMAGES", "images"},
    {"no source", [](auto* r) { r->add_images(); }, "INVALID_FIELD",
     "images[1]"},
    {"top_k -1", [](auto* r) { r->mutable_params()->set_top_k(-1); },
     "INVALID_FIELD", "params.top_k"},
    {"top_k 11", [](auto* r) { r->mutable_params()->set_top_k(11); },
     "INVALID_FIELD", "params.top_k"},
    {"top_k huge", [](auto* r) { r->mutable_params()->set_top_k(INT32_MAX); },
     "INVALID_FIELD", "params.top_k"},
    {"min_score NaN",
     [](auto* r) { r->mutable_params()->set_min_score(std::nanf("")); },
     "INVALID_FIELD", "params.min_score"},
    {"score_type 99",
     [](auto* r) {
       r->mutable_params()->set_score_type(
           static_cast<v1::ClassifyParams::ScoreType>(99));
     },
     "INVALID_FIELD", "params.score_type"},
    {"class not in model",
     [](auto* r) {
       r->mutable_params()->add_class_filter(9);
       r->mutable_params()->add_class_filter(10);
     },
     "INVALID_FIELD", "params.class_filter[1]"},
    {"class -1", [](auto* r) { r->mutable_params()->add_class_filter(-1); },
     "INVALID_FIELD", "params.class_filter[0]"},
    {"priority 99",
     [](auto* r) {
       r->mutable_options()->set_priority(
           static_cast<v1::RequestOptions::Priority>(99));
     },
     "INVALID_FIELD", "options.priority"},
    {"resize -1",
     [](auto* r) {
       r->mutable_options()->set_resize(
           static_cast<v1::RequestOptions::Resize>(-1));
     },
     "INVALID_FIELD", "options.resize"},
    {"negative wait",
     [](auto* r) {
       r->mutable_options()->mutable_max_queue_wait()->set_seconds(-1);
     },
     "INVALID_FIELD", "options.max_queue_wait"},
    {"no wait", [](auto* r) { r->mutable_options()->mutable_max_queue_wait(); },
     "INVALID_FIELD", "options.max_queue_wait"},
    {"wait of too many nanoseconds",
     [](auto* r) {
       r->mutable_options()->mutable_max_queue_wait()->set_nanos(2000000000);
     },
     "INVALID_FIELD", "options.max_queue_wait"},
    {"negative nanos",
     [](auto* r) {
       r->mutable_options()->mutable_max_queue_wait()->set_seconds(1);
       r->mutable_options()->mutable_max_queue_wait()->set_nanos(-1);
     },
     "INVALID_FIELD", "options.max_queue_wait"},
    {"long request_id",
     [](auto* r) { r->set_request_id(std::string(129, 'x')); }, "INVALID_FIELD",
     "request_id"},
    {"orientation 9",
     [](auto* r) {
       r->mutable_images(0)->set_orientation(
           static_cast<v1::Image::Orientation>(9));
     },
     "INVALID_FIELD", "images[0].orientation"},
    {"crop empty",
     [](auto* r) { r->mutable_images(0)->mutable_crop()->set_x_max(0); },
     "INVALID_FIELD", "images[0].crop.x_min"},
    {"crop beyond the picture",
     [](auto* r) {
       r->mutable_images(0)->mutable_crop()->set_x_max(1);
       r->mutable_images(0)->mutable_crop()->set_y_max(1.5f);
     },
     "INVALID_FIELD", "images[0].crop.y_min"},
    {"crop NaN",
     [](auto* r) {
       auto& crop = *r->mutable_images(0)->mutable_crop();
       crop.set_x_max(1);
       crop.set_y_max(std::nanf(""));
     },
     "INVALID_FIELD", "images[0].crop.y_min"},
    {"stride too small",
     [](auto* r) {
       r->mutable_images(0)->mutable_pixels()->set_row_stride_bytes(100);
     },
     "INVALID_FIELD", "images[0].pixels.row_stride_bytes"},
    {"one byte short",
     [](auto* r) {
       r->mutable_images(0)->mutable_pixels()->mutable_data()->pop_back();
     },
     "INVALID_FIELD", "images[0].pixels.data"},
    {"one byte long",
     [](auto* r) {
       r->mutable_images(0)->mutable_pixels()->mutable_data()->push_back(0);
     },
     "INVALID_FIELD", "images[0].pixels.data"},
    {"NV12 of odd size",
     [](auto* r) {
       r->mutable_images(0)->mutable_pixels()->set_width(63);
       r->mutable_images(0)->mutable_pixels()->set_format(
           v1::PixelBuffer::NV12);
     },
     "INVALID_FIELD", "images[0].pixels.width"},
    {"negative height",
     [](auto* r) { r->mutable_images(0)->mutable_pixels()->set_height(-1); },
     "INVALID_FIELD", "images[0].pixels.height"},
    {"huge sides",
     [](auto* r) {
       r->mutable_images(0)->mutable_pixels()->set_width(INT32_MAX);
       r->mutable_images(0)->mutable_pixels()->set_height(INT32_MAX);
     },
     "IMAGE_TOO_LARGE", "images[0].pixels.width"},
    {"tensor of another size",
     [](auto* r) {
       SetTensor(r, {3, 32, 32}, 3 * 32 * 32 * 4);
     },
     "INVALID_FIELD", "images[0].tensor.shape"},
    {"tensor of zero size",
     [](auto* r) {
       SetTensor(r, {3, 0, 64}, 0);
     },
     "INVALID_FIELD", "images[0].tensor.shape"},
    {"tensor whose size overflows",
     [](auto* r) {
       SetTensor(r, {int64_t{1} << 62, int64_t{1} << 62, 16}, 0);
     },
     "INVALID_FIELD", "images[0].tensor.shape"},
    {"tensor one byte short",
     [](auto* r) {
       SetTensor(r, {3, 64, 64}, 3 * 64 * 64 * 4 - 1);
     },
     "INVALID_FIELD", "images[0].tensor.data"},
    {"tensor with a crop",
     [](auto* r) {
       SetTensor(r, {3, 64, 64}, 3 * 64 * 64 * 4);
       r->mutable_images(0)->mutable_crop()->set_x_max(1);
     },
     "INVALID_FIELD", "images[0].crop"},
    {"NaN in a tensor",
     [](auto* r) {
       SetTensor(r, {3, 64, 64}, 3 * 64 * 64 * 4);
       const float nan = std::nanf("");
       r->mutable_images(0)->mutable_tensor()->mutable_data()->replace(
           40, 4, reinterpret_cast<const char*>(&nan), 4);
     },
     "INVALID_FIELD", "images[0].tensor.data"},
    {"infinity in a tensor",
     [](auto* r) {
       SetTensor(r, {3, 64, 64}, 3 * 64 * 64 * 4);
       const float inf = std::numeric_limits<float>::infinity();
       r->mutable_images(0)->mutable_tensor()->mutable_data()->replace(
           0, 4, reinterpret_cast<const char*>(&inf), 4);
     },
     "INVALID_FIELD", "images[0].tensor.data"},
    {"empty bytes", [](auto* r) { r->mutable_images(0)->set_encoded(""); },
     "IMAGE_FORMAT_UNSUPPORTED", "images[0].encoded"},
    {"text",
     [](auto* r) { r->mutable_images(0)->set_encoded("this is no image"); },
     "IMAGE_FORMAT_UNSUPPORTED", "images[0].encoded"},
    {"GIF",
     [](auto* r) {
       r->mutable_images(0)->set_encoded(std::string("GIF89a\1\0\1\0", 10));
     },
     "IMAGE_FORMAT_UNSUPPORTED", "images[0].encoded"},
    {"JPEG that ends early",
     [](auto* r) { r->mutable_images(0)->set_encoded("\xff\xd8\xff\xe0"); },
     "IMAGE_DECODE_FAILED", "images[0].encoded"},
    {"PNG of 65535 x 65535",
     [](auto* r) {
       r->mutable_images(0)->set_encoded(PngHeader(65535, 65535));
     },
     "IMAGE_TOO_LARGE", "images[0].encoded"},
    {"PNG without pixels",
     [](auto* r) { r->mutable_images(0)->set_encoded(PngHeader(64, 64)); },
     "IMAGE_DECODE_FAILED", "images[0].encoded"},
};

TEST_F(RequestValidationTest, BadRequestsGetTheirReasonAndMatesTheirBytes) {
  Start();
  // This request runs alone. Its response is stored for comparison.
  ExpectAlive();
  for (const BadRequest& bad : kBadRequests) {
    SCOPED_TRACE(bad.name);
    ClassifyRequest request = server::GreyRequest(7);
    bad.change(&request);
    server::Call bad_call(*server_, request);
    server::Call good_call(*server_,
                           // This image runs in the batch of the bad image.
                           server::GreyRequest(100));
    const server::Ending ending = bad_call.Wait();
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(ending.reason, bad.reason);
    EXPECT_EQ(ending.field, bad.field);
    EXPECT_NE(ending.message, "");
    EXPECT_EQ(ending.message.find("/tmp"), std::string::npos);
    EXPECT_EQ(good_call.Wait().code, StatusCode::OK);
    EXPECT_EQ(good_call.response().SerializeAsString(), expected_);
  }
  const double errors = std::size(kBadRequests);
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(code="INVALID_ARGUMENT")"}, errors),
            errors);
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total", {R"(code="OK")"},
                                errors + 1),
            errors + 1);
}

TEST_F(RequestValidationTest, NanNamesItsElement) {
  Start();
  ClassifyRequest request = server::GreyRequest(7);
  SetTensor(&request, {3, 64, 64}, 3 * 64 * 64 * 4);
  const float nan = std::nanf("");
  request.mutable_images(0)->mutable_tensor()->mutable_data()->replace(
      40, 4, reinterpret_cast<const char*>(&nan), 4);
  const std::string message = Classify(request).message;
  EXPECT_NE(message.find("images[0].tensor.data"), std::string::npos);
  EXPECT_NE(message.find("element 10,"), std::string::npos) << message;
}

TEST_F(RequestValidationTest, InvalidUtf8IsRefusedAndTheServerLives) {
  Start();
  ClassifyRequest request = server::GreyRequest(1);
  request.set_model("fa\xffke");
  EXPECT_NE(Classify(request).code, StatusCode::OK);
  ExpectAlive();
}

TEST_F(RequestValidationTest, LargeMessagesAndMetadataAreRefused) {
  v1::ServerConfig config;
  config.set_max_message_bytes(1 << 20);
  config.set_max_image_bytes(1 << 19);
  Start("", config);
  ClassifyRequest request;
  request.add_images()->set_encoded(std::string(1 << 20, 'x'));
  EXPECT_EQ(Classify(request).code, StatusCode::RESOURCE_EXHAUSTED);
  for (const int length : {20 << 10, 10 << 20}) {
    grpc::ClientContext context;
    context.AddMetadata("x-large", std::string(length, 'x'));
    ClassifyResponse response;
    const grpc::Status refused =
        server_->stub().Classify(&context, server::GreyRequest(1), &response);
    EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    server_->Connect();  // The old connection may have been closed.
    ExpectAlive();
  }
}

TEST(RequestIdTest, HasAtMost128CharactersOfUtf8) {
  EXPECT_TRUE(ValidateRequestId("").ok());
  EXPECT_TRUE(ValidateRequestId(std::string(128, 'x')).ok());
  for (const std::string& bad :
       {std::string(129, 'x'), std::string("\xff"), std::string("a\xc3")}) {
    const absl::Status status = ValidateRequestId(bad);
    EXPECT_EQ(server::GetErrorDetail(status).field, "request_id");
  }
}

TEST(ResizeOptionTest, AModelThatKeepsTheRatioTakesNone) {
  model::ModelConfig keeps, classifier;
  keeps.resize = model::Resize::kKeepRatio;
  PredictionRequest request;
  request.images = 1;
  EXPECT_EQ(ValidateRequest(request, keeps, RequestLimits()), absl::OkStatus());
  for (const auto& [mode, name] :
       {std::make_pair(image::ResizeMode::kStretch, "STRETCH"),
        std::make_pair(image::ResizeMode::kLetterbox, "LETTERBOX"),
        std::make_pair(image::ResizeMode::kCenterCrop, "CENTER_CROP")}) {
    request.options.resize = mode;
    const absl::Status status =
        ValidateRequest(request, keeps, RequestLimits());
    EXPECT_EQ(server::GetErrorDetail(status).field, "options.resize");
    EXPECT_NE(status.message().find(absl::StrCat("got ", name, ",")),
              std::string::npos)
        << status;
    EXPECT_EQ(ValidateRequest(request, classifier, RequestLimits()),
              absl::OkStatus());
  }
}

TEST_F(RequestValidationTest, HalfCloseWithoutDataEndsTheCall) {
  Start();
  TimeLimit limit("the end of the call");
  grpc::GenericStub stub(server_->channel());
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  auto call =
      stub.PrepareCall(&context, "/sfmamba.v1.VisionService/Classify", &queue);
  call->StartCall(this);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  call->WritesDone(this);
  queue.Next(&tag, &ok);
  grpc::Status status;
  call->Finish(&status, this);
  queue.Next(&tag, &ok);
  EXPECT_FALSE(status.ok());
  ExpectAlive();
}

}  // namespace
}  // namespace sfmamba::prediction
