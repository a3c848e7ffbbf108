#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/server/running_server.h"

namespace sfmamba {
namespace {

using grpc::StatusCode;
using v1::ClassifyRequest;
using v1::ClassifyResponse;

// A call under way. Must be waited for.
class Call {
 public:
  Call(RunningServer& server, ClassifyRequest request)
      : request_(std::move(request)) {
    server.stub().async()->Classify(&context_, &request_, &response_,
                                    [this](grpc::Status status) {
                                      status_ = std::move(status);
                                      done_.Notify();
                                    });
  }

  Ending Wait() {
    done_.WaitForNotification();
    return EndingOf(status_, &context_);
  }
  void Cancel() { context_.TryCancel(); }
  const ClassifyResponse& response() const { return response_; }

 private:
  grpc::ClientContext context_;
  const ClassifyRequest request_;
  ClassifyResponse response_;
  grpc::Status status_;
  absl::Notification done_;
};

class VisionServiceTest : public testing::Test {
 protected:
  VisionServiceTest() : repository_(NewFolder("models")) {}

  // A server of one model, "fake", version 3.
  void Start(const std::string& batching = "",
             v1::ServerConfig config = v1::ServerConfig(), bool load = true) {
    WriteModel(repository_, "fake", "3", batching);
    config.set_model_repository(repository_);
    server_ = std::make_unique<RunningServer>(config, load);
  }

  Ending Classify(const ClassifyRequest& request,
                  ClassifyResponse* response = nullptr) {
    Call call(*server_, request);
    const Ending ending = call.Wait();
    if (response != nullptr) *response = call.response();
    return ending;
  }

  // The server still answers a good request, with the bytes it always gives.
  void ExpectAlive() {
    ClassifyResponse response;
    ASSERT_EQ(Classify(GreyRequest(100), &response).code, StatusCode::OK);
    if (expected_.empty()) expected_ = response.SerializeAsString();
    EXPECT_EQ(response.SerializeAsString(), expected_);
  }

  const std::string repository_;
  std::unique_ptr<RunningServer> server_;
  std::string expected_;
};

TEST_F(VisionServiceTest, ClassifiesAndSaysByWhat) {
  Start();
  ClassifyRequest request = GreyRequest(200);
  request.set_request_id("abc");
  request.mutable_options()->set_include_timing(true);
  request.mutable_params()->set_top_k(3);
  request.mutable_params()->set_include_embedding(true);
  ClassifyResponse response;
  ASSERT_EQ(Classify(request, &response).code, StatusCode::OK);
  ASSERT_EQ(response.results_size(), 1);
  ASSERT_EQ(response.results(0).categories_size(), 3);
  const auto& categories = response.results(0).categories();
  EXPECT_GE(categories[0].score(), categories[1].score());
  EXPECT_GE(categories[1].score(), categories[2].score());
  EXPECT_EQ(categories[0].label(),
            absl::StrCat("label ", categories[0].class_id()));
  EXPECT_EQ(response.results(0).embedding_size(), 2);
  EXPECT_EQ(response.model(), "models/fake/versions/3");
  EXPECT_EQ(response.request_id(), "abc");
  EXPECT_EQ(response.timing().batch_size(), 1);
  EXPECT_EQ(response.timing().bucket(), "64x64");
  EXPECT_EQ(response.timing().device(), "fake");
  EXPECT_GT(response.timing().total().nanos(), 0);
}

TEST_F(VisionServiceTest, TimingOnlyOnRequest) {
  Start();
  ClassifyResponse response;
  ASSERT_EQ(Classify(GreyRequest(1), &response).code, StatusCode::OK);
  EXPECT_FALSE(response.has_timing());
}

TEST_F(VisionServiceTest, AnImageHasTheSameBytesAloneAndInABatch) {
  Start("max_batch_size: 8 max_queue_delay { seconds: 1 }");
  std::vector<std::string> alone;
  ClassifyRequest all;
  for (int i = 0; i < 8; ++i) {
    ClassifyResponse response;
    ASSERT_EQ(Classify(GreyRequest(30 * i), &response).code, StatusCode::OK);
    alone.push_back(response.results(0).SerializeAsString());
    *all.add_images() = GreyImage(30 * i);
  }
  all.mutable_options()->set_include_timing(true);
  ClassifyResponse response;
  ASSERT_EQ(Classify(all, &response).code, StatusCode::OK);
  EXPECT_EQ(response.timing().batch_size(), 8);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(response.results(i).SerializeAsString(), alone[i]) << i;
  }
}

TEST_F(VisionServiceTest, RequestsShareABatch) {
  Start("max_batch_size: 4 max_queue_delay { seconds: 60 }");
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 4; ++i) {
    ClassifyRequest request = GreyRequest(i);
    request.mutable_options()->set_include_timing(true);
    calls.push_back(std::make_unique<Call>(*server_, request));
  }
  for (auto& call : calls) {
    ASSERT_EQ(call->Wait().code, StatusCode::OK);
    EXPECT_EQ(call->response().timing().batch_size(), 4);
  }
}

TEST_F(VisionServiceTest, EachFormOfAnImageGivesTheSameAnswer) {
  Start();
  const int plane = FakeModel::kSide * FakeModel::kSide;
  std::string rgb(3 * plane, '\0'), planes(3 * plane, '\0');
  for (int i = 0; i < plane; ++i) {
    for (int c = 0; c < 3; ++c) {
      rgb[3 * i + c] = planes[c * plane + i] = (i * 7 + c * 50) % 256;
    }
  }
  ClassifyRequest pixels = GreyRequest(0);
  pixels.mutable_images(0)->mutable_pixels()->set_data(rgb);
  ClassifyRequest tensor;
  v1::Tensor& t = *tensor.add_images()->mutable_tensor();
  t.set_data_type(v1::Tensor::UINT8);
  for (int size : {3, FakeModel::kSide, FakeModel::kSide}) t.add_shape(size);
  t.set_data(planes);
  ClassifyResponse a, b;
  ASSERT_EQ(Classify(pixels, &a).code, StatusCode::OK);
  ASSERT_EQ(Classify(tensor, &b).code, StatusCode::OK);
  EXPECT_EQ(a.SerializeAsString(), b.SerializeAsString());
}

// ---- Which model ----

TEST_F(VisionServiceTest, ModelIsFoundByEachForm) {
  Start();
  for (const char* name :
       {"", "fake", "models/fake", "models/fake/versions/3"}) {
    ClassifyRequest request = GreyRequest(1);
    request.set_model(name);
    ClassifyResponse response;
    EXPECT_EQ(Classify(request, &response).code, StatusCode::OK) << name;
    EXPECT_EQ(response.model(), "models/fake/versions/3");
  }
}

TEST_F(VisionServiceTest, UnknownModelsAreNotFound) {
  Start();
  for (const char* name :
       {"other", "models/other", "models/fake/versions/4",
        "models/fake/versions/03", "models/fake/labels/stable"}) {
    ClassifyRequest request = GreyRequest(1);
    request.set_model(name);
    const Ending ending = Classify(request);
    EXPECT_EQ(ending.code, StatusCode::NOT_FOUND) << name;
    EXPECT_EQ(ending.reason, "MODEL_NOT_FOUND") << name;
    EXPECT_EQ(ending.metadata.at("model"), name);
  }
  for (const std::string& name :
       {std::string("models/fake/foo"), std::string("../fake"),
        std::string("fake/3"), std::string(129, 'a'),
        std::string(1 << 20, 'a')}) {
    ClassifyRequest request = GreyRequest(1);
    request.set_model(name);
    const Ending ending = Classify(request);
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(ending.reason, "INVALID_FIELD");
    EXPECT_EQ(ending.field, "model");
  }
  ExpectAlive();
}

TEST_F(VisionServiceTest, NoNameMeansTheOnlyModelNotOneOfTwo) {
  WriteModel(repository_, "second", "1");
  Start();
  const Ending ending = Classify(GreyRequest(1));
  EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ending.field, "model");
}

TEST_F(VisionServiceTest, AModelThatStillLoadsIsNotReady) {
  Start("", {}, /*load=*/false);
  const Ending ending = Classify(GreyRequest(1));
  EXPECT_EQ(ending.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(ending.reason, "MODEL_NOT_READY");
  EXPECT_EQ(ending.metadata.at("state"), "LOADING");
}

// ---- What bad requests get ----

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

// A PNG's signature and IHDR, with a wrong checksum if any.
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
    {"wait of too many nanoseconds",
     [](auto* r) {
       r->mutable_options()->mutable_max_queue_wait()->set_nanos(2000000000);
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
     [](auto* r) { r->mutable_images(0)->mutable_crop()->set_y_max(1); },
     "INVALID_FIELD", "images[0].crop.x_min"},
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

TEST_F(VisionServiceTest, BadRequestsGetTheirReasonAndMatesTheirBytes) {
  Start();
  ExpectAlive();  // Alone: remembers the bytes.
  for (const BadRequest& bad : kBadRequests) {
    SCOPED_TRACE(bad.name);
    ClassifyRequest request = GreyRequest(7);
    bad.change(&request);
    Call bad_call(*server_, request);
    Call good_call(*server_, GreyRequest(100));  // Its batch mate.
    const Ending ending = bad_call.Wait();
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

TEST_F(VisionServiceTest, NanNamesItsElement) {
  Start();
  ClassifyRequest request = GreyRequest(7);
  SetTensor(&request, {3, 64, 64}, 3 * 64 * 64 * 4);
  const float nan = std::nanf("");
  request.mutable_images(0)->mutable_tensor()->mutable_data()->replace(
      40, 4, reinterpret_cast<const char*>(&nan), 4);
  const std::string message = Classify(request).message;
  EXPECT_NE(message.find("images[0].tensor.data"), std::string::npos);
  EXPECT_NE(message.find("element 10,"), std::string::npos) << message;
}

TEST_F(VisionServiceTest, InvalidUtf8IsRefusedAndTheServerLives) {
  Start();
  ClassifyRequest request = GreyRequest(1);
  request.set_model("fa\xffke");
  EXPECT_NE(Classify(request).code, StatusCode::OK);
  ExpectAlive();
}

TEST_F(VisionServiceTest, LargeMessagesAndMetadataAreRefused) {
  v1::ServerConfig config;
  config.set_max_message_bytes(1 << 20);
  config.set_max_image_bytes(1 << 19);
  Start("", config);
  ClassifyRequest request;
  request.add_images()->set_encoded(std::string(1 << 20, 'x'));
  EXPECT_EQ(Classify(request).code, StatusCode::RESOURCE_EXHAUSTED);
  for (int length : {20 << 10, 10 << 20}) {
    grpc::ClientContext context;
    context.AddMetadata("x-large", std::string(length, 'x'));
    ClassifyResponse response;
    const grpc::Status refused =
        server_->stub().Classify(&context, GreyRequest(1), &response);
    EXPECT_EQ(refused.error_code(), StatusCode::RESOURCE_EXHAUSTED);
    server_->Connect();  // The old connection may have been closed.
    ExpectAlive();
  }
}

TEST_F(VisionServiceTest, HalfCloseWithoutDataEndsTheCall) {
  Start();
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

// ---- Partial results and dry runs ----

TEST_F(VisionServiceTest, WithPartialResultsABadImageFailsAlone) {
  Start();
  ClassifyRequest request = GreyRequest(100);
  request.add_images()->set_encoded("text");             // By its header.
  request.add_images()->set_encoded(PngHeader(64, 64));  // By its pixels.
  request.mutable_options()->set_allow_partial_results(true);
  ClassifyResponse response;
  ASSERT_EQ(Classify(request, &response).code, StatusCode::OK);
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).categories_size(), 5);
  EXPECT_FALSE(response.results(0).has_error());
  EXPECT_EQ(response.results(1).error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(response.results(1).error().message().find("images[1].encoded"),
            std::string::npos);
  EXPECT_EQ(response.results(2).error().code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_items_total", {R"(outcome="error")"}, 2), 2);
}

TEST_F(VisionServiceTest, ValidateOnlyChecksAndRunsNothing) {
  Start();
  ClassifyRequest request = GreyRequest(1);
  request.mutable_options()->set_validate_only(true);
  ClassifyResponse response;
  EXPECT_EQ(Classify(request, &response).code, StatusCode::OK);
  EXPECT_EQ(response.model(), "models/fake/versions/3");
  EXPECT_EQ(response.results(0).categories_size(), 0);
  request.mutable_params()->set_top_k(-1);
  EXPECT_EQ(Classify(request).field, "params.top_k");
  EXPECT_EQ(server_->WaitForSum("sfmamba_items_total", {R"(outcome="ok")"}, 0),
            0);
}

// ---- Overload, deadlines, cancellation ----

TEST_F(VisionServiceTest, AFullQueueSaysWhenToComeBack) {
  Start("max_batch_size: 1 max_queue_items: 1");
  server_->gate().Close();
  Call running(*server_, GreyRequest(1));
  server_->gate().WaitForBatch();  // The queue is empty again.
  Call queued(*server_, GreyRequest(2));
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 1), 1);
  Call refused(*server_, GreyRequest(3));
  const Ending ending = refused.Wait();
  EXPECT_EQ(ending.code, StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ending.reason, "QUEUE_FULL");
  EXPECT_TRUE(ending.has_retry_info);
  EXPECT_EQ(ending.pushback, "100");
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(queued.Wait().code, StatusCode::OK);
  EXPECT_EQ(server_->WaitForSum("sfmamba_admission_rejections_total",
                                {R"(reason="QUEUE_FULL")"}, 1),
            1);
  ExpectAlive();
}

TEST_F(VisionServiceTest, MaxQueueWaitExpiresInTheQueue) {
  Start("max_batch_size: 1");
  server_->gate().Close();
  Call running(*server_, GreyRequest(1));
  server_->gate().WaitForBatch();
  ClassifyRequest request = GreyRequest(2);
  request.mutable_options()->mutable_max_queue_wait()->set_nanos(30'000'000);
  const Ending ending = Classify(request);
  EXPECT_EQ(ending.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ending.reason, "EXPIRED_IN_QUEUE");
  EXPECT_EQ(ending.metadata.at("stage"), "queue");
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_items_total", {R"(outcome="expired")"}, 1),
      1);
}

TEST_F(VisionServiceTest, TheDefaultDeadlineHoldsAfterTheModelToo) {
  v1::ServerConfig config;
  config.mutable_default_deadline()->set_nanos(50'000'000);
  Start("", config);
  server_->gate().Close();
  Call call(*server_, GreyRequest(1));
  server_->gate().WaitForBatch();
  std::thread opener([this] {
    absl::SleepFor(absl::Milliseconds(60));  // Past the deadline.
    server_->gate().Open();
  });
  const Ending ending = call.Wait();
  opener.join();
  EXPECT_EQ(ending.code, StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(ending.metadata.at("stage"), "postprocess");
}

TEST_F(VisionServiceTest, AClientsDeadlineCountsAsExpired) {
  Start("max_batch_size: 1");
  server_->gate().Close();
  Call running(*server_, GreyRequest(1));
  server_->gate().WaitForBatch();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(300));
  ClassifyResponse response;
  EXPECT_EQ(server_->stub()
                .Classify(&context, GreyRequest(2), &response)
                .error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(code="DEADLINE_EXCEEDED")"}, 1),
            1);
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
}

TEST_F(VisionServiceTest, CancellingInTheQueueFreesTheRoom) {
  Start("max_batch_size: 1 max_queue_items: 1");
  server_->gate().Close();
  Call running(*server_, GreyRequest(1));
  server_->gate().WaitForBatch();
  Call queued(*server_, GreyRequest(2));
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 1), 1);
  queued.Cancel();
  EXPECT_EQ(queued.Wait().code, StatusCode::CANCELLED);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_requests_total", {R"(code="CANCELLED")"}, 1),
      1);
  EXPECT_EQ(server_->WaitForSum("sfmamba_queue_items", {}, 0), 0);
  Call next(*server_, GreyRequest(100));
  server_->gate().Open();
  EXPECT_EQ(running.Wait().code, StatusCode::OK);
  EXPECT_EQ(next.Wait().code, StatusCode::OK);
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_items_total", {R"(outcome="cancelled")"}, 1),
      1);
}

TEST_F(VisionServiceTest, CancellingWhileTheModelRuns) {
  Start();
  server_->gate().Close();
  Call call(*server_, GreyRequest(1));
  server_->gate().WaitForBatch();
  call.Cancel();
  EXPECT_EQ(call.Wait().code, StatusCode::CANCELLED);
  server_->gate().Open();
  EXPECT_EQ(
      server_->WaitForSum("sfmamba_requests_total", {R"(code="CANCELLED")"}, 1),
      1);
  ExpectAlive();
}

TEST_F(VisionServiceTest, CancellingAtOnceEndsEachCallOnce) {
  Start();
  for (int i = 0; i < 50; ++i) {
    Call call(*server_, GreyRequest(i));
    call.Cancel();
    const Ending ending = call.Wait();
    EXPECT_TRUE(ending.code == StatusCode::CANCELLED ||
                ending.code == StatusCode::OK);
  }
  ExpectAlive();
  EXPECT_EQ(server_->WaitForSum("sfmamba_in_flight_requests", {}, 0), 0);
}

TEST_F(VisionServiceTest, ADeadlineThatHasPassedIsRefused) {
  Start();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() -
                       std::chrono::seconds(1));
  ClassifyResponse response;
  EXPECT_EQ(server_->stub()
                .Classify(&context, GreyRequest(2), &response)
                .error_code(),
            StatusCode::DEADLINE_EXCEEDED);
  ExpectAlive();
}

// ---- The other methods ----

TEST_F(VisionServiceTest, WhatIsNotBuiltSaysSo) {
  Start();
  const auto detect = [this](const char* model) {
    grpc::ClientContext context;
    v1::DetectRequest request;
    request.set_model(model);
    v1::DetectResponse response;
    return EndingOf(server_->stub().Detect(&context, request, &response));
  };
  EXPECT_EQ(detect("").code, StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(detect("").reason, "NOT_SUPPORTED");
  EXPECT_EQ(detect("other").reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(detect("fake").code, StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(detect("fake").reason, "TASK_MISMATCH");

  grpc::ClientContext context;
  v1::SegmentRequest request;
  request.set_model("models/fake");
  v1::SegmentResponse response;
  EXPECT_EQ(
      EndingOf(server_->stub().Segment(&context, request, &response)).reason,
      "TASK_MISMATCH");

  grpc::ClientContext stream_context;
  auto stream = server_->stub().StreamPredict(&stream_context);
  v1::StreamPredictResponse message;
  EXPECT_FALSE(stream->Read(&message));
  const Ending ending = EndingOf(stream->Finish());
  EXPECT_EQ(ending.code, StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ending.reason, "NOT_SUPPORTED");
}

TEST_F(VisionServiceTest, GetModelTellsAllOfIt) {
  Start("max_batch_size: 6");
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_name("models/fake");
  v1::Model model;
  ASSERT_TRUE(server_->stub().GetModel(&context, request, &model).ok());
  EXPECT_EQ(model.name(), "models/fake/versions/3");
  EXPECT_EQ(model.task(), v1::Model::CLASSIFICATION);
  EXPECT_EQ(model.state(), v1::Model::READY);
  EXPECT_EQ(model.input().buckets(0).width(), FakeModel::kSide);
  EXPECT_EQ(model.input().resize(), "center_crop");
  EXPECT_EQ(model.class_count(), 10);
  ASSERT_EQ(model.classes_size(), 10);
  EXPECT_EQ(model.classes(9).label(), "label 9");
  EXPECT_EQ(model.max_batch_size(), 6);
  EXPECT_EQ(model.weights_size_bytes(), 15);
  EXPECT_EQ(model.content_sha256().size(), 64u);
  EXPECT_GT(model.load_time().seconds(), 1'000'000'000);
  grpc::ClientContext other;
  request.set_name("other");
  EXPECT_EQ(EndingOf(server_->stub().GetModel(&other, request, &model)).reason,
            "MODEL_NOT_FOUND");
}

TEST_F(VisionServiceTest, ListModelsGoesByPages) {
  for (const char* id : {"c", "a", "b"}) WriteModel(repository_, id, "1");
  Start();
  std::vector<std::string> names;
  v1::ListModelsRequest request;
  request.set_page_size(3);
  int pages = 0;
  do {
    grpc::ClientContext context;
    v1::ListModelsResponse response;
    ASSERT_TRUE(server_->stub().ListModels(&context, request, &response).ok());
    for (const v1::Model& model : response.models()) {
      names.push_back(model.name());
      EXPECT_EQ(model.classes_size(), 0);
      EXPECT_EQ(model.class_count(), 10);
    }
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "models/a/versions/1", "models/b/versions/1",
                       "models/c/versions/1", "models/fake/versions/3"}));
  const auto field = [this](int size, const char* token) {
    grpc::ClientContext context;
    v1::ListModelsRequest request;
    request.set_page_size(size);
    request.set_page_token(token);
    v1::ListModelsResponse response;
    return EndingOf(server_->stub().ListModels(&context, request, &response))
        .field;
  };
  EXPECT_EQ(field(-1, ""), "page_size");
  EXPECT_EQ(field(5000, ""), "");
  EXPECT_EQ(field(1, "nonsense"), "page_token");
}

TEST_F(VisionServiceTest, ErrorsAndLogCarryTheTraceId) {
  Start();
  grpc::ClientContext context;
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736";
  context.AddMetadata("traceparent", "00-" + id + "-00f067aa0ba902b7-01");
  ClassifyRequest request = GreyRequest(1);
  request.set_request_id("the \"request\"");
  request.mutable_params()->set_top_k(-1);
  ClassifyResponse response;
  const Ending ending =
      EndingOf(server_->stub().Classify(&context, request, &response));
  EXPECT_EQ(ending.metadata.at("trace_id"), id);
  const std::string log = server_->Log();
  EXPECT_NE(log.find("\"trace_id\":\"" + id + "\""), std::string::npos);
  EXPECT_NE(log.find("\"request_id\":\"the \\\"request\\\"\""),
            std::string::npos);
  EXPECT_NE(log.find("\"reason\":\"INVALID_FIELD\""), std::string::npos);
}

}  // namespace
}  // namespace sfmamba
