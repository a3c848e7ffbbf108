// Calls a real server process over REST. Its answers must equal those of gRPC,
// bit for bit.

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// Returns a copy of the default models, because the server does not follow
// links out of its repository.
std::string DefaultModels() {
  const std::string folder = absl::StrCat(testing::TempDir(), "/models");
  std::filesystem::remove_all(folder);
  std::filesystem::copy("models", folder,
                        std::filesystem::copy_options::recursive);
  return folder;
}

class RestProcessTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = new ServerProcess({"--model_repository=" + DefaultModels()});
    ASSERT_TRUE(server_->WaitUntilServing()) << server_->output();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  RestProcessTest()
      : stub_(v1::VisionService::NewStub(grpc::CreateChannel(
            server_->address(), grpc::InsecureChannelCredentials()))),
        http_("127.0.0.1", server_->http_port()) {
    http_.set_read_timeout(absl::ToInt64Seconds(kTestPatience), 0);
    http_.set_keep_alive(true);
  }

  std::string Post(const std::string& path, const std::string& body,
                   const std::string& type, const std::string& accept) {
    const httplib::Result answer =
        http_.Post(path, {{"Accept", accept}}, body, type.c_str());
    if (!answer) {
      ADD_FAILURE() << httplib::to_string(answer.error());
      return "";
    }
    EXPECT_EQ(answer->status, 200) << answer->body;
    return answer->body;
  }

  // Sends the request in every form that REST has. Each answer must equal
  // `expected`.
  template <typename Request, typename Response>
  void ExpectSame(const std::string& verb, const std::string& query,
                  const Request& request, const Response& expected) {
    const std::string path =
        absl::StrCat("/v1/models/", request.model(), ":", verb);
    std::string json;
    ASSERT_TRUE(
        google::protobuf::util::MessageToJsonString(request, &json).ok());
    const std::string picture = request.images(0).encoded();
    for (const std::string accept :
         {"application/json", "application/x-protobuf"}) {
      const std::string answers[] = {
          Post(path + "?" + query, picture, "image/jpeg", accept),
          Post(path, json, "application/json", accept),
          Post(path, request.SerializeAsString(), "application/x-protobuf",
               accept)};
      for (const std::string& answer : answers) {
        Response response;
        if (accept == "application/json") {
          ASSERT_TRUE(
              google::protobuf::util::JsonStringToMessage(answer, &response)
                  .ok());
        } else {
          ASSERT_TRUE(response.ParseFromString(answer));
        }
        EXPECT_EQ(response.SerializeAsString(), expected.SerializeAsString());
      }
    }
  }

  static ServerProcess* server_;
  const std::string picture_ = ReadFile("client/samples/scene_01.jpg");
  const std::unique_ptr<v1::VisionService::Stub> stub_;
  httplib::Client http_;
};

ServerProcess* RestProcessTest::server_ = nullptr;

TEST_F(RestProcessTest, ScoresAreThoseOfGrpc) {
  v1::ClassifyRequest request;
  request.set_model("everyday");
  request.add_images()->set_encoded(picture_);
  request.mutable_params()->set_top_k(20);
  request.mutable_params()->set_score_type(v1::ClassifyParams::LOGIT);
  request.mutable_params()->set_include_embedding(true);
  request.set_request_id("same");
  grpc::ClientContext context;
  v1::ClassifyResponse expected;
  ASSERT_TRUE(stub_->Classify(&context, request, &expected).ok());
  EXPECT_EQ(expected.results(0).categories_size(), 20);
  ExpectSame("classify",
             "top_k=20&score_type=LOGIT&include_embedding=true&request_id=same",
             request, expected);
}

TEST_F(RestProcessTest, BoxesAndMasksAreThoseOfGrpc) {
  v1::DetectRequest request;
  request.set_model("everyday_detector");
  request.add_images()->set_encoded(picture_);
  request.mutable_params()->set_score_threshold(0.1f);
  for (const char* encoding : {"COCO_RLE", "PNG_CROP"}) {
    auto value = v1::DetectParams::MASK_ENCODING_UNSPECIFIED;
    ASSERT_TRUE(v1::DetectParams::MaskEncoding_Parse(encoding, &value));
    request.mutable_params()->set_mask_encoding(value);
    grpc::ClientContext context;
    v1::DetectResponse expected;
    ASSERT_TRUE(stub_->Detect(&context, request, &expected).ok());
    EXPECT_GT(expected.results(0).detections_size(), 0);
    ExpectSame("detect",
               absl::StrCat("score_threshold=0.1&mask_encoding=", encoding),
               request, expected);
  }
}

TEST_F(RestProcessTest, MapsAreThoseOfGrpc) {
  v1::SegmentRequest request;
  request.set_model("everyday_segmenter");
  request.add_images()->set_encoded(picture_);
  request.mutable_params()->set_include_class_areas(true);
  request.mutable_params()->set_include_confidence_map(true);
  for (const char* encoding : {"PNG_INDEX", "RLE_PER_CLASS", "RAW_INDEX"}) {
    auto value = v1::SegmentParams::ENCODING_UNSPECIFIED;
    ASSERT_TRUE(v1::SegmentParams::Encoding_Parse(encoding, &value));
    request.mutable_params()->set_encoding(value);
    grpc::ClientContext context;
    v1::SegmentResponse expected;
    ASSERT_TRUE(stub_->Segment(&context, request, &expected).ok());
    EXPECT_GT(expected.results(0).areas_size(), 0);
    ExpectSame("segment",
               absl::StrCat("include_class_areas=true&include_confidence_map="
                            "true&encoding=",
                            encoding),
               request, expected);
  }
}

TEST_F(RestProcessTest, MapsThroughAWindowAreThoseOfGrpc) {
  v1::SegmentRequest request;
  request.set_model("everyday_segmenter");
  request.add_images()->set_encoded(picture_);
  v1::SlidingWindow* const slide = request.mutable_params()->mutable_slide();
  slide->set_width(128);
  slide->set_height(96);
  slide->set_stride_x(64);
  grpc::ClientContext context;
  v1::SegmentResponse expected;
  ASSERT_TRUE(stub_->Segment(&context, request, &expected).ok());
  ExpectSame("segment", "slide.width=128&slide.height=96&slide.stride_x=64",
             request, expected);
}

TEST_F(RestProcessTest, ModelsAreThoseOfGrpc) {
  grpc::ClientContext context;
  v1::ListModelsResponse expected, page;
  ASSERT_TRUE(
      stub_->ListModels(&context, v1::ListModelsRequest(), &expected).ok());
  const httplib::Result answer = http_.Get("/v1/models");
  ASSERT_TRUE(answer);
  ASSERT_TRUE(
      google::protobuf::util::JsonStringToMessage(answer->body, &page).ok());
  EXPECT_EQ(page.SerializeAsString(), expected.SerializeAsString());
  for (const v1::Model& model : expected.models()) {
    grpc::ClientContext other;
    v1::GetModelRequest request;
    request.set_name(model.name());
    v1::Model described, read;
    ASSERT_TRUE(stub_->GetModel(&other, request, &described).ok());
    const httplib::Result one = http_.Get("/v1/" + model.name());
    ASSERT_TRUE(one);
    ASSERT_TRUE(
        google::protobuf::util::JsonStringToMessage(one->body, &read).ok());
    EXPECT_EQ(read.SerializeAsString(), described.SerializeAsString());
  }
}

}  // namespace
}  // namespace sfmamba
