// Sends pictures from public bug reports to a real server process over each
// API. The results must have the size and the first class in
// tests/testdata/strangers/expect.tsv.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "inference/grpc_service.grpc.pb.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr char kFolder[] = "tests/testdata/strangers/";
// The tolerance for logits. The server's picture decoder may round differently
// from the decoders that made expect.tsv.
constexpr float kClose = 0.01;

struct Stranger {
  std::string file, kind;
  int width = 0, height = 0, class_id = 0;
  float logit = 0;
  std::string bytes;
};

std::vector<Stranger> Strangers() {
  std::ifstream table(absl::StrCat(kFolder, "expect.tsv"));
  std::string heading;
  std::getline(table, heading);
  std::vector<Stranger> strangers;
  for (Stranger one; table >> one.file >> one.kind >> one.width >> one.height >>
                     one.class_id >> one.logit;) {
    std::ifstream file(kFolder + one.file, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    one.bytes = bytes.str();
    strangers.push_back(one);
  }
  return strangers;
}

// Returns the path of a copy of the models. The server does not follow links
// out of its repository.
std::string Models() {
  const std::string folder = absl::StrCat(testing::TempDir(), "/models");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const char* name : {"photographs", "everyday_detector"}) {
    std::filesystem::copy(absl::StrCat("models/", name),
                          absl::StrCat(folder, "/", name),
                          std::filesystem::copy_options::recursive);
  }
  return folder;
}

class StrangersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new ServerProcess({"--model_repository=" + Models()});
    ASSERT_TRUE(server_->WaitUntilServing()) << server_->output();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  StrangersTest()
      : channel_(grpc::CreateChannel(server_->address(),
                                     grpc::InsecureChannelCredentials())),
        typed_(v1::VisionService::NewStub(channel_)),
        http_("127.0.0.1", server_->http_port()) {
    http_.set_read_timeout(absl::ToInt64Seconds(kTestPatience), 0);
  }

  static v1::ClassifyRequest Request(const std::string& bytes) {
    v1::ClassifyRequest request;
    request.set_model("photographs");
    request.add_images()->set_encoded(bytes);
    request.mutable_params()->set_top_k(1);
    request.mutable_params()->set_score_type(v1::ClassifyParams::LOGIT);
    return request;
  }

  void ExpectFirst(const v1::ClassifyResponse& response, const Stranger& one) {
    ASSERT_EQ(response.results_size(), 1);
    ASSERT_EQ(response.results(0).categories_size(), 1)
        << response.results(0).error().message();
    const v1::Category& first = response.results(0).categories(0);
    EXPECT_EQ(first.class_id(), one.class_id);
    EXPECT_NEAR(first.score(), one.logit, kClose);
  }

  static void ExpectFirst(const std::vector<float>& logits,
                          const Stranger& one) {
    ASSERT_FALSE(logits.empty());
    const auto first = std::max_element(logits.begin(), logits.end());
    EXPECT_EQ(first - logits.begin(), one.class_id);
    EXPECT_NEAR(*first, one.logit, kClose);
  }

  // Posts the picture as a request body.
  template <typename Response>
  Response ByRest(const std::string& target, const Stranger& one,
                  const httplib::Headers& headers = {}) {
    const bool png = absl::EndsWith(one.file, ".png");
    const httplib::Result answer = http_.Post(target, headers, one.bytes,
                                              png ? "image/png" : "image/jpeg");
    Response response;
    EXPECT_TRUE(answer) << httplib::to_string(answer.error());
    if (!answer) return response;
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_TRUE(
        google::protobuf::util::JsonStringToMessage(answer->body, &response)
            .ok());
    return response;
  }

  static ServerProcess* server_;
  const std::vector<Stranger> strangers_ = Strangers();
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::VisionService::Stub> typed_;
  httplib::Client http_;
};

ServerProcess* StrangersTest::server_ = nullptr;

TEST_F(StrangersTest, TheTypedApiAnswersThem) {
  ASSERT_EQ(strangers_.size(), 20);
  for (const Stranger& one : strangers_) {
    SCOPED_TRACE(one.file);
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    const grpc::Status status =
        typed_->Classify(&context, Request(one.bytes), &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ExpectFirst(response, one);
  }
}

TEST_F(StrangersTest, TheirSizesAreThoseOfTheTurnedPictures) {
  for (const Stranger& one : strangers_) {
    SCOPED_TRACE(one.file);
    v1::DetectRequest request;
    request.set_model("everyday_detector");
    request.add_images()->set_encoded(one.bytes);
    grpc::ClientContext context;
    v1::DetectResponse response;
    const grpc::Status status = typed_->Detect(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.results(0).image_width(), one.width);
    EXPECT_EQ(response.results(0).image_height(), one.height);
    const v1::DetectResponse by_rest =
        ByRest<v1::DetectResponse>("/v1/models/everyday_detector:detect", one);
    ASSERT_EQ(by_rest.results_size(), 1);
    EXPECT_EQ(by_rest.results(0).image_width(), one.width);
    EXPECT_EQ(by_rest.results(0).image_height(), one.height);
  }
}

TEST_F(StrangersTest, RestAnswersThem) {
  for (const Stranger& one : strangers_) {
    SCOPED_TRACE(one.file);
    ExpectFirst(
        ByRest<v1::ClassifyResponse>(
            "/v1/models/photographs:classify?top_k=1&score_type=LOGIT", one),
        one);
  }
}

TEST_F(StrangersTest, KserveAnswersThem) {
  const auto kserve = inference::GRPCInferenceService::NewStub(channel_);
  for (const Stranger& one : strangers_) {
    SCOPED_TRACE(one.file);
    inference::ModelInferRequest request = kserve::BytesRequest({one.bytes});
    request.set_model_name("photographs");
    grpc::ClientContext context;
    inference::ModelInferResponse response;
    const grpc::Status status =
        kserve->ModelInfer(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ExpectFirst(kserve::Values<float>(response.raw_output_contents(0)), one);
  }
}

TEST_F(StrangersTest, KserveOverRestAnswersThem) {
  const httplib::Headers no_json = {{"Inference-Header-Content-Length", "0"}};
  for (const Stranger& one : strangers_) {
    SCOPED_TRACE(one.file);
    const auto answer = ByRest<google::protobuf::Struct>(
                            "/v2/models/photographs/infer", one, no_json)
                            .fields();
    ASSERT_TRUE(answer.contains("outputs"));
    const auto& output =
        answer.at("outputs").list_value().values(0).struct_value().fields();
    std::vector<float> logits;
    for (const auto& value : output.at("data").list_value().values()) {
      logits.push_back(value.number_value());
    }
    ExpectFirst(logits, one);
  }
}

TEST_F(StrangersTest, WhatIsNoPictureIsNamed) {
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  const std::string gif = "GIF89a" + std::string(20, '\0');
  const grpc::Status status =
      typed_->Classify(&context, Request(gif), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const std::string says = "this is a GIF; JPEG, PNG and WebP are taken";
  EXPECT_TRUE(absl::StrContains(status.error_message(), says))
      << status.error_message();
  const httplib::Result answer =
      http_.Post("/v1/models/photographs:classify", gif, "image/jpeg");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
  EXPECT_TRUE(absl::StrContains(answer->body, says)) << answer->body;
}

}  // namespace
}  // namespace sfmamba
