// Tests the methods of VisionService over gRPC.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::rpc {
namespace {

using server::VisionServiceTest;

using grpc::StatusCode;
using v1::ClassifyRequest;
using v1::ClassifyResponse;

TEST_F(VisionServiceTest, ClassifiesAndSaysByWhat) {
  Start();
  ClassifyRequest request = server::GreyRequest(200);
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
  ASSERT_EQ(Classify(server::GreyRequest(1), &response).code, StatusCode::OK);
  EXPECT_FALSE(response.has_timing());
}

// Returns a configuration whose profile budget is zero, so the server measures
// no batch times. The server then does not know whether smaller batches are
// efficient. So the first batch waits until it is full.
v1::ServerConfig WithoutTimes() {
  v1::ServerConfig config;
  config.mutable_profile_budget();
  return config;
}

TEST_F(VisionServiceTest, AnImageHasTheSameBytesAloneAndInABatch) {
  Start("max_batch_size: 8 mode: THROUGHPUT max_queue_delay { seconds: 1 }",
        WithoutTimes());
  ClassifyRequest all;
  for (int i = 0; i < 8; ++i) *all.add_images() = server::GreyImage(30 * i);
  all.mutable_options()->set_include_timing(true);
  ClassifyResponse together;
  ASSERT_EQ(Classify(all, &together).code, StatusCode::OK);
  EXPECT_EQ(together.timing().batch_size(), 8);
  for (int i = 0; i < 8; ++i) {
    ClassifyResponse alone;
    ASSERT_EQ(Classify(server::GreyRequest(30 * i), &alone).code,
              StatusCode::OK);
    EXPECT_EQ(together.results(i).SerializeAsString(),
              alone.results(0).SerializeAsString())
        << i;
  }
}

TEST_F(VisionServiceTest, RequestsShareABatch) {
  Start("max_batch_size: 4 mode: THROUGHPUT max_queue_delay { seconds: 60 }",
        WithoutTimes());
  std::vector<std::unique_ptr<server::Call>> calls;
  for (int i = 0; i < 4; ++i) {
    ClassifyRequest request = server::GreyRequest(i);
    request.mutable_options()->set_include_timing(true);
    calls.push_back(std::make_unique<server::Call>(*server_, request));
  }
  for (auto& call : calls) {
    ASSERT_EQ(call->Wait().code, StatusCode::OK);
    EXPECT_EQ(call->response().timing().batch_size(), 4);
  }
}

TEST_F(VisionServiceTest, EachFormOfAnImageGivesTheSameAnswer) {
  Start();
  const int plane = server::FakeModel::kSide * server::FakeModel::kSide;
  std::string rgb(3 * plane, '\0'), planes(3 * plane, '\0');
  for (int i = 0; i < plane; ++i) {
    for (int c = 0; c < 3; ++c) {
      rgb[3 * i + c] = planes[c * plane + i] = (i * 7 + c * 50) % 256;
    }
  }
  ClassifyRequest pixels = server::GreyRequest(0);
  pixels.mutable_images(0)->mutable_pixels()->set_data(rgb);
  ClassifyRequest tensor;
  v1::Tensor& t = *tensor.add_images()->mutable_tensor();
  t.set_data_type(v1::Tensor::UINT8);
  for (int size : {3, server::FakeModel::kSide, server::FakeModel::kSide})
    t.add_shape(size);
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
    ClassifyRequest request = server::GreyRequest(1);
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
    ClassifyRequest request = server::GreyRequest(1);
    request.set_model(name);
    const server::Ending ending = Classify(request);
    EXPECT_EQ(ending.code, StatusCode::NOT_FOUND) << name;
    EXPECT_EQ(ending.reason, "MODEL_NOT_FOUND") << name;
    EXPECT_EQ(ending.metadata.at("model"), name);
  }
  for (const std::string& name :
       {std::string("models/fake/foo"), std::string("../fake"),
        std::string("fake/3"), std::string(129, 'a'),
        std::string(1 << 20, 'a')}) {
    ClassifyRequest request = server::GreyRequest(1);
    request.set_model(name);
    const server::Ending ending = Classify(request);
    EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(ending.reason, "INVALID_FIELD");
    EXPECT_EQ(ending.field, "model");
  }
  ExpectAlive();
}

TEST_F(VisionServiceTest, NoNameMeansTheOnlyModelNotOneOfTwo) {
  server::WriteModel(repository_, "second", "1");
  Start();
  const server::Ending ending = Classify(server::GreyRequest(1));
  EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ending.field, "model");
}

TEST_F(VisionServiceTest, AModelThatStillLoadsIsNotReady) {
  Start("", {}, /*load=*/false);
  const server::Ending ending = Classify(server::GreyRequest(1));
  EXPECT_EQ(ending.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(ending.reason, "MODEL_NOT_READY");
  EXPECT_EQ(ending.metadata.at("state"), "LOADING");
}

TEST_F(VisionServiceTest, NoNameMeansTheOnlyModelOfTheTask) {
  server::WriteModel(repository_, "finder", "1", "",
                     model::VisionTask::kDetection);
  server::WriteModel(repository_, "painter", "1", "",
                     model::VisionTask::kSegmentation);
  Start();
  ClassifyResponse classified;
  EXPECT_EQ(Classify(server::GreyRequest(1), &classified).code, StatusCode::OK);
  EXPECT_EQ(classified.model(), "models/fake/versions/3");
  v1::DetectRequest detect;
  *detect.add_images() = server::GreyImage(1);
  v1::DetectResponse detected;
  EXPECT_EQ(Detect(detect, &detected).code, StatusCode::OK);
  EXPECT_EQ(detected.model(), "models/finder/versions/1");
  v1::SegmentRequest segment;
  *segment.add_images() = server::GreyImage(1);
  v1::SegmentResponse segmented;
  EXPECT_EQ(Segment(segment, &segmented).code, StatusCode::OK);
  EXPECT_EQ(segmented.model(), "models/painter/versions/1");
}

TEST_F(VisionServiceTest, NoNameWithoutAModelOfTheTaskIsRefused) {
  server::WriteModel(repository_, "finder", "1", "",
                     model::VisionTask::kDetection);
  Start();
  v1::SegmentRequest request;
  *request.add_images() = server::GreyImage(1);
  const server::Ending ending = Segment(request);
  EXPECT_EQ(ending.code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ending.field, "model");
  EXPECT_NE(ending.message.find("0 models for segmentation"),
            std::string::npos);
}

TEST_F(VisionServiceTest, AModelOfAnotherTaskIsAMismatch) {
  server::WriteModel(repository_, "detection", "1", "",
                     model::VisionTask::kDetection);
  server::WriteModel(repository_, "segmentation", "1", "",
                     model::VisionTask::kSegmentation);
  server::WriteModel(repository_, "classification", "1");
  Start();
  const auto expect_mismatch = [](const server::Ending& ending,
                                  const char* expected,
                                  const std::string& model) {
    SCOPED_TRACE(model);
    EXPECT_EQ(ending.code, StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(ending.reason, "TASK_MISMATCH");
    EXPECT_EQ(ending.field, "model");
    EXPECT_EQ(ending.metadata.at("got"), model);
    EXPECT_EQ(ending.metadata.at("expected"), expected);
    EXPECT_EQ(ending.metadata.at("model"),
              absl::StrCat("models/", model, "/versions/1"));
  };
  for (const char* model : {"detection", "segmentation"}) {
    ClassifyRequest request = server::GreyRequest(1);
    request.set_model(model);
    expect_mismatch(Classify(request), "classification", model);
  }
  for (const char* model : {"classification", "segmentation"}) {
    v1::DetectRequest request;
    *request.add_images() = server::GreyImage(1);
    request.set_model(model);
    expect_mismatch(Detect(request), "detection", model);
  }
  for (const char* model : {"classification", "detection"}) {
    v1::SegmentRequest request;
    *request.add_images() = server::GreyImage(1);
    request.set_model(model);
    expect_mismatch(Segment(request), "segmentation", model);
  }
  EXPECT_EQ(server_->WaitForSum("sfmamba_requests_total",
                                {R"(code="FAILED_PRECONDITION")"}, 6),
            6);
}

// ---- The other methods ----

TEST_F(VisionServiceTest, ErrorsCarryTheTraceIdAndTheLogSaysMore) {
  Start();
  grpc::ClientContext context;
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736";
  context.AddMetadata("traceparent", "00-" + id + "-00f067aa0ba902b7-01");
  ClassifyRequest request = server::GreyRequest(1);
  *request.add_images() = request.images(0);
  request.set_request_id("the \"request\"");
  request.mutable_params()->set_top_k(-1);
  ClassifyResponse response;
  const server::Ending ending =
      server::EndingOf(server_->stub().Classify(&context, request, &response));
  EXPECT_EQ(ending.metadata.at("trace_id"), id);
  const std::string log = server_->Log();
  EXPECT_NE(log.find("\"trace_id\":\"" + id + "\""), std::string::npos);
  EXPECT_NE(log.find("\"request_id\":\"the \\\"request\\\"\""),
            std::string::npos);
  EXPECT_NE(log.find("\"reason\":\"INVALID_FIELD\""), std::string::npos);
  EXPECT_NE(log.find("\"images\":2"), std::string::npos);
}

}  // namespace
}  // namespace sfmamba::rpc
