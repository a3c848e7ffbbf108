// Tests models that have a second name, on a server with fake models.

#include "server/api/kserve/published_model.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/server/picture.h"

namespace sfmamba::kserve {
namespace {

using grpc::StatusCode;

TEST(InputOfTest, HasAnySizeIfTheModelKeepsTheRatio) {
  model::ModelConfig config;
  config.image_size = 224;
  config.resize = model::Resize::kStretch;
  EXPECT_EQ(InputOf(config).dims, (std::vector<int64_t>{3, 224, 224}));
  config.resize = model::Resize::kKeepRatio;
  EXPECT_EQ(InputOf(config).dims, (std::vector<int64_t>{3, -1, -1}));
}

class PublishedModelTest : public KserveTest {
 protected:
  void StartTwice(model::VisionTask task = model::VisionTask::kClassification) {
    v1::ServerConfig config;
    config.set_publish_encoded_models(true);
    Start("", std::move(config), /*load=*/true, task);
  }

  server::Ending Metadata(const std::string& name, const std::string& version,
                          inference::ModelMetadataResponse* metadata) {
    grpc::ClientContext context;
    inference::ModelMetadataRequest request;
    request.set_name(name);
    request.set_version(version);
    return server::EndingOf(stub_->ModelMetadata(&context, request, metadata),
                            &context);
  }

  inference::ModelConfig Config(const std::string& name) {
    grpc::ClientContext context;
    inference::ModelConfigRequest request;
    request.set_name(name);
    inference::ModelConfigResponse response;
    EXPECT_TRUE(stub_->ModelConfig(&context, request, &response).ok());
    return response.config();
  }

  std::vector<std::string> Index() {
    grpc::ClientContext context;
    inference::RepositoryIndexResponse index;
    EXPECT_TRUE(stub_->RepositoryIndex(&context, {}, &index).ok());
    std::vector<std::string> models;
    for (const auto& model : index.models()) {
      EXPECT_EQ(model.state(), "READY");
      models.push_back(model.name() + ":" + model.version());
    }
    return models;
  }

  // Returns the statistics of one model. If `name` is empty, returns the
  // statistics of all models.
  inference::ModelStatisticsResponse Statistics(const std::string& name) {
    grpc::ClientContext context;
    inference::ModelStatisticsRequest request;
    request.set_name(name);
    inference::ModelStatisticsResponse statistics;
    EXPECT_TRUE(stub_->ModelStatistics(&context, request, &statistics).ok());
    return statistics;
  }
};

TEST_F(PublishedModelTest, IsThereOnceUnlessAsked) {
  Start();
  EXPECT_EQ(Index(), std::vector<std::string>({"fake:3"}));
  inference::ModelMetadataResponse metadata;
  const server::Ending ending = Metadata("fake_encoded", "", &metadata);
  EXPECT_EQ(ending.code, StatusCode::NOT_FOUND);
  EXPECT_EQ(ending.reason, "MODEL_NOT_FOUND");
  EXPECT_EQ(Metadata("a fake", "", &metadata).field, "name");
}

TEST_F(PublishedModelTest, TellsHowAModelIsBatched) {
  v1::ServerConfig server;
  server.mutable_default_deadline()->set_seconds(7);
  Start(
      "max_batch_size: 100 max_queue_items: 200 "
      "max_queue_delay { nanos: 2000000 }",
      server);
  const inference::ModelConfig config = Config("fake");
  EXPECT_EQ(config.max_batch_size(), 64) << "as many as a request has";
  EXPECT_EQ(config.platform(), "sfmamba");
  EXPECT_EQ(config.backend(), "sfmamba");
  EXPECT_EQ(config.version_policy().latest().num_versions(), 1);
  EXPECT_EQ(config.input(0).format(), inference::ModelInput::FORMAT_NCHW);
  EXPECT_EQ(config.output(0).label_filename(), "labels.txt");
  EXPECT_EQ(config.output(1).label_filename(), "");
  ASSERT_EQ(config.instance_group_size(), 1);
  EXPECT_EQ(config.instance_group(0).name(), "fake");
  EXPECT_EQ(config.instance_group(0).count(), 1);
  EXPECT_EQ(config.instance_group(0).kind(),
            inference::ModelInstanceGroup::KIND_GPU)
      << "it is not on a CPU";
  const inference::ModelDynamicBatching& batching = config.dynamic_batching();
  EXPECT_EQ(batching.max_queue_delay_microseconds(), 2000);
  EXPECT_EQ(batching.priority_levels(), 3);
  EXPECT_EQ(batching.default_priority_level(), 2);
  const auto& queue = batching.default_queue_policy();
  EXPECT_EQ(queue.default_timeout_microseconds(), 7'000'000);
  EXPECT_TRUE(queue.allow_timeout_override());
  EXPECT_EQ(queue.max_queue_size(), 200);
}

TEST_F(PublishedModelTest, TheSecondNameIsDescribedWithFiles) {
  StartTwice();
  EXPECT_EQ(Index(), (std::vector<std::string>{"fake:3", "fake_encoded:3"}));
  for (const char* version : {"", "3"}) {
    inference::ModelMetadataResponse metadata, own;
    ASSERT_EQ(Metadata("fake_encoded", version, &metadata).code,
              StatusCode::OK);
    EXPECT_EQ(metadata.name(), "fake_encoded");
    ASSERT_EQ(metadata.inputs_size(), 1);
    EXPECT_EQ(metadata.inputs(0).name(), "image");
    EXPECT_EQ(metadata.inputs(0).datatype(), "BYTES");
    ASSERT_EQ(metadata.inputs(0).shape_size(), 2);
    EXPECT_EQ(metadata.inputs(0).shape(0), -1);
    EXPECT_EQ(metadata.inputs(0).shape(1), 1);
    ASSERT_EQ(Metadata("fake", version, &own).code, StatusCode::OK);
    EXPECT_EQ(own.name(), "fake");
    EXPECT_EQ(own.inputs(0).datatype(), "FP32");
    EXPECT_EQ(metadata.outputs(0).SerializeAsString(),
              own.outputs(0).SerializeAsString());
  }
  inference::ModelMetadataResponse none;
  EXPECT_EQ(Metadata("fake_encoded", "4", &none).code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Metadata("_encoded", "", &none).code, StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Metadata("fake_encoded_encoded", "", &none).code,
            StatusCode::NOT_FOUND);
  const inference::ModelConfig config = Config("fake_encoded");
  EXPECT_EQ(config.name(), "fake_encoded");
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_STRING);
  ASSERT_EQ(config.input(0).dims_size(), 1);
  EXPECT_EQ(config.input(0).dims(0), 1);
  EXPECT_EQ(config.max_batch_size(), Config("fake").max_batch_size());
}

TEST_F(PublishedModelTest, BothNamesHaveOneQueue) {
  StartTwice();
  const std::string file = server::EncodePng(server::Gradient(64, 64));
  ModelInferRequest request = BytesRequest({file});
  const ModelInferResponse own = Answer(request);
  EXPECT_EQ(own.model_name(), "fake");
  request.set_model_name("fake_encoded");
  request.mutable_inputs(0)->add_shape(1);
  ModelInferResponse encoded = Answer(request);
  EXPECT_EQ(encoded.model_name(), "fake_encoded");
  encoded.set_model_name("fake");
  EXPECT_EQ(encoded.SerializeAsString(), own.SerializeAsString());
  ModelInferRequest tensor = Fp32Request();
  tensor.set_model_name("fake_encoded");
  Answer(tensor);
  for (const char* name : {"fake", "fake_encoded"}) {
    const auto statistics = Statistics(name);
    ASSERT_EQ(statistics.model_stats_size(), 1);
    EXPECT_EQ(statistics.model_stats(0).name(), name);
    EXPECT_EQ(statistics.model_stats(0).inference_count(), 3);
  }
  EXPECT_EQ(Statistics("").model_stats_size(), 2);
}

TEST_F(PublishedModelTest, AnErrorNamesWhatWasAskedFor) {
  StartTwice();
  ModelInferRequest request = BytesRequest({"no picture"});
  request.set_model_name("fake_encoded");
  EXPECT_EQ(Infer(request).reason, "IMAGE_FORMAT_UNSUPPORTED");
  request.set_model_name("other_encoded");
  const server::Ending ending = Infer(request);
  EXPECT_EQ(ending.reason, "MODEL_NOT_FOUND");
  EXPECT_NE(ending.message.find("other_encoded"), std::string::npos);
}

TEST_F(PublishedModelTest, ASegmenterTakesOneFile) {
  StartTwice(model::VisionTask::kSegmentation);
  EXPECT_EQ(Config("fake_encoded").max_batch_size(), 1);
  EXPECT_GT(Config("fake").max_batch_size(), 1);
}

TEST_F(PublishedModelTest, AModelsOwnNameComesFirst) {
  server::WriteModel(repository_, "fake_encoded", "7", "",
                     model::VisionTask::kClassification);
  StartTwice();
  EXPECT_EQ(Index(), (std::vector<std::string>{"fake:3", "fake_encoded:7",
                                               "fake_encoded_encoded:7"}));
  inference::ModelMetadataResponse metadata;
  ASSERT_EQ(Metadata("fake_encoded", "", &metadata).code, StatusCode::OK);
  EXPECT_EQ(metadata.versions(0), "7");
  EXPECT_EQ(metadata.inputs(0).datatype(), "FP32");
  // "fake_encoded" would also be the second name of the model "fake", which has
  // a version 3. But a model of this name exists, and it has no version 3.
  EXPECT_EQ(Metadata("fake_encoded", "3", &metadata).code,
            StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace sfmamba::kserve
