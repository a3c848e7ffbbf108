// Calls a real server process over the Open Inference Protocol. Its answers
// must equal those of the typed API, bit for bit.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.grpc.pb.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/picture.h"

namespace sfmamba {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using kserve::Values;

constexpr int kSide = 64, kClasses = 5;

class KserveProcessTest : public testing::Test {
 protected:
  KserveProcessTest() {
    const std::string repository = WriteTinyModel("max_batch_size: 4");
    AddRandomDenseModels(repository);
    server_ = std::make_unique<ServerProcess>(std::vector<std::string>{
        "--model_repository=" + repository, "--random_init"});
  }

  void SetUp() override {
    ASSERT_TRUE(server_->WaitUntilServing());
    const auto channel = grpc::CreateChannel(
        server_->address(), grpc::InsecureChannelCredentials());
    kserve_ = inference::GRPCInferenceService::NewStub(channel);
    typed_ = v1::VisionService::NewStub(channel);
  }

  ModelInferResponse Infer(const ModelInferRequest& request) {
    grpc::ClientContext context;
    ModelInferResponse response;
    const grpc::Status status =
        kserve_->ModelInfer(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  ModelInferResponse Infer(const std::string& model,
                           const std::vector<std::string>& files) {
    ModelInferRequest request = kserve::BytesRequest(files);
    request.set_model_name(model);
    return Infer(request);
  }

  // Returns the logits from the typed API. The class number is the index.
  std::vector<float> Logits(const v1::Image& image) {
    v1::ClassifyRequest request;
    request.set_model("tiny");
    *request.add_images() = image;
    request.mutable_params()->set_top_k(kClasses);
    request.mutable_params()->set_score_type(v1::ClassifyParams::LOGIT);
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    EXPECT_TRUE(typed_->Classify(&context, request, &response).ok());
    std::vector<float> logits(kClasses);
    for (const v1::Category& category : response.results(0).categories()) {
      logits[category.class_id()] = category.score();
    }
    return logits;
  }

  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> kserve_;
  std::unique_ptr<v1::VisionService::Stub> typed_;
};

TEST_F(KserveProcessTest, PicturesHaveTheLogitsOfTheTypedApi) {
  const std::vector<std::string> files = {
      server::EncodePng(server::Gradient(120, 80)),
      server::EncodeJpeg(server::Gradient(64, 200))};
  std::vector<float> expected;
  for (const std::string& file : files) {
    v1::Image image;
    image.set_encoded(file);
    const std::vector<float> logits = Logits(image);
    expected.insert(expected.end(), logits.begin(), logits.end());
  }
  const ModelInferResponse response = Infer("tiny", files);
  EXPECT_EQ(Values<float>(response.raw_output_contents(0)), expected);
  EXPECT_EQ(response.outputs(1).name(), "embedding");
  EXPECT_EQ(response.raw_output_contents(1).size() / sizeof(float),
            response.outputs(1).shape(0) * response.outputs(1).shape(1));
}

TEST_F(KserveProcessTest, TensorsHaveTheLogitsOfTheTypedApi) {
  std::vector<float> values(3 * kSide * kSide);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i % 100 / 50.f - 1;
  v1::Image image;
  image.mutable_tensor()->set_data_type(v1::Tensor::FP32);
  for (const int side : {3, kSide, kSide}) {
    image.mutable_tensor()->add_shape(side);
  }
  image.mutable_tensor()->set_data(kserve::Raw(values));
  ModelInferRequest request = kserve::RequestFor("FP32", {1, 3, kSide, kSide});
  request.set_model_name("tiny");
  request.add_raw_input_contents(kserve::Raw(values));
  EXPECT_EQ(Values<float>(Infer(request).raw_output_contents(0)),
            Logits(image));
}

TEST_F(KserveProcessTest, ADetectorsObjectsAreThoseOfTheTypedApi) {
  const std::string file = server::EncodePng(server::Gradient(120, 80));
  v1::DetectRequest request;
  request.set_model("finder");
  request.add_images()->set_encoded(file);
  grpc::ClientContext context;
  v1::DetectResponse expected;
  ASSERT_TRUE(typed_->Detect(&context, request, &expected).ok());
  const auto& objects = expected.results(0).detections();
  const ModelInferResponse response = Infer("finder", {file});
  ASSERT_EQ(response.raw_output_contents_size(), 4);
  EXPECT_EQ(Values<int32_t>(response.raw_output_contents(0))[0],
            objects.size());
  const auto boxes = Values<float>(response.raw_output_contents(1));
  const auto scores = Values<float>(response.raw_output_contents(2));
  const auto classes = Values<int32_t>(response.raw_output_contents(3));
  for (int i = 0; i < objects.size(); ++i) {
    EXPECT_EQ(boxes[4 * i], objects[i].box().x_min());
    EXPECT_EQ(boxes[4 * i + 3], objects[i].box().y_max());
    EXPECT_EQ(scores[i], objects[i].score());
    EXPECT_EQ(classes[i], objects[i].class_id());
  }
}

TEST_F(KserveProcessTest, ASegmentersMapIsThatOfTheTypedApi) {
  const std::string file = server::EncodePng(server::Gradient(120, 80));
  v1::SegmentRequest request;
  request.set_model("painter");
  request.add_images()->set_encoded(file);
  request.mutable_params()->set_encoding(v1::SegmentParams::RAW_INDEX);
  grpc::ClientContext context;
  v1::SegmentResponse expected;
  ASSERT_TRUE(typed_->Segment(&context, request, &expected).ok());
  const ModelInferResponse response = Infer("painter", {file});
  EXPECT_EQ(response.outputs(0).shape(1), 80);
  EXPECT_EQ(response.outputs(0).shape(2), 120);
  EXPECT_EQ(response.raw_output_contents(0), expected.results(0).raw().data());
}

}  // namespace
}  // namespace sfmamba
