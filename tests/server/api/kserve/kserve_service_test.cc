// Tests all methods of the Open Inference Protocol except ModelInfer, through a
// client.

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/server/api/kserve/kserve_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::kserve {
namespace {

using grpc::StatusCode;

class KserveServiceTest : public KserveTest {
 protected:
  // Calls a method of the stub and fills `response`. Returns how the call
  // ended.
  template <typename Request, typename Response>
  server::Ending Ask(
      grpc::Status (inference::GRPCInferenceService::Stub::*method)(
          grpc::ClientContext*, const Request&, Response*),
      const Request& request, Response* response) {
    grpc::ClientContext context;
    return server::EndingOf((stub_.get()->*method)(&context, request, response),
                            &context);
  }

  bool IsReady() {
    inference::ServerReadyResponse response;
    EXPECT_EQ(
        Ask(&Stub::ServerReady, inference::ServerReadyRequest(), &response)
            .code,
        StatusCode::OK);
    return response.ready();
  }
  bool IsReady(const std::string& name, const std::string& version = "") {
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    inference::ModelReadyResponse response;
    EXPECT_EQ(Ask(&Stub::ModelReady, request, &response).code, StatusCode::OK);
    return response.ready();
  }
  inference::ModelStatistics Statistics() {
    inference::ModelStatisticsRequest request;
    request.set_name("fake");
    inference::ModelStatisticsResponse response;
    EXPECT_EQ(Ask(&Stub::ModelStatistics, request, &response).code,
              StatusCode::OK);
    EXPECT_EQ(response.model_stats_size(), 1);
    return response.model_stats(0);
  }

  using Stub = inference::GRPCInferenceService::Stub;

  void StartExplicit() {
    v1::ServerConfig config;
    config.set_model_control("explicit");
    Start("", config);
  }
  server::Ending Load(const std::string& model) {
    inference::RepositoryModelLoadRequest request;
    request.set_model_name(model);
    inference::RepositoryModelLoadResponse response;
    return Ask(&Stub::RepositoryModelLoad, request, &response);
  }
  server::Ending Unload(const std::string& model) {
    inference::RepositoryModelUnloadRequest request;
    request.set_model_name(model);
    (*request.mutable_parameters())["unload_dependents"].set_bool_param(true);
    inference::RepositoryModelUnloadResponse response;
    return Ask(&Stub::RepositoryModelUnload, request, &response);
  }
  // Returns the state of the model and version "{name}:{version}". Returns ""
  // if the index has no such entry.
  std::string IndexOf(const std::string& version) {
    inference::RepositoryIndexResponse index;
    Ask(&Stub::RepositoryIndex, inference::RepositoryIndexRequest(), &index);
    for (const auto& model : index.models()) {
      if (model.name() + ":" + model.version() == version) {
        return model.state();
      }
    }
    return "";
  }
};

TEST_F(KserveServiceTest, IsReadyOnceTheModelsAreLoaded) {
  Start("", v1::ServerConfig(), /*load=*/false);
  inference::ServerLiveResponse live;
  EXPECT_EQ(Ask(&Stub::ServerLive, inference::ServerLiveRequest(), &live).code,
            StatusCode::OK);
  EXPECT_TRUE(live.live());
  EXPECT_FALSE(IsReady());
  EXPECT_FALSE(IsReady("fake"));
  ASSERT_TRUE(server_->server().LoadModels().ok());
  EXPECT_TRUE(IsReady());
  EXPECT_TRUE(IsReady("fake"));
  EXPECT_TRUE(IsReady("fake", "3"));
  EXPECT_FALSE(IsReady("fake", "4"));
  EXPECT_FALSE(IsReady("other"));
}

TEST_F(KserveServiceTest, IsServingByItsHealthName) {
  Start("", v1::ServerConfig(), /*load=*/false);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("inference.GRPCInferenceService");
  const auto status = [&] {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    EXPECT_TRUE(server_->health().Check(&context, request, &response).ok());
    return response.status();
  };
  EXPECT_EQ(status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  ASSERT_TRUE(server_->server().LoadModels().ok());
  EXPECT_EQ(status(), grpc::health::v1::HealthCheckResponse::SERVING);
}

TEST_F(KserveServiceTest, SaysWhatItIs) {
  Start();
  inference::ServerMetadataResponse metadata;
  EXPECT_EQ(
      Ask(&Stub::ServerMetadata, inference::ServerMetadataRequest(), &metadata)
          .code,
      StatusCode::OK);
  EXPECT_EQ(metadata.name(), "sfmamba");
  EXPECT_EQ(metadata.version(), "test");
  const auto& extensions = metadata.extensions();
  for (const char* name : {"statistics", "model_configuration",
                           "classification", "binary_tensor_data"}) {
    EXPECT_NE(std::find(extensions.begin(), extensions.end(), name),
              extensions.end())
        << name;
  }
  for (const std::string& name : extensions) {
    EXPECT_EQ(name.find("shared_memory"), std::string::npos);
  }
}

// The client perf_analyzer reads the metadata and the configuration and
// compares them.
TEST_F(KserveServiceTest, MetadataAndConfigAgree) {
  for (const model::VisionTask task :
       {model::VisionTask::kClassification, model::VisionTask::kDetection,
        model::VisionTask::kSegmentation}) {
    Start(task);
    inference::ModelMetadataRequest asked;
    asked.set_name("fake");
    inference::ModelMetadataResponse metadata;
    ASSERT_EQ(Ask(&Stub::ModelMetadata, asked, &metadata).code, StatusCode::OK);
    inference::ModelConfigRequest config_asked;
    config_asked.set_name("fake");
    config_asked.set_version("3");
    inference::ModelConfigResponse answer;
    ASSERT_EQ(Ask(&Stub::ModelConfig, config_asked, &answer).code,
              StatusCode::OK);
    const inference::ModelConfig& config = answer.config();
    EXPECT_EQ(metadata.name(), "fake");
    EXPECT_EQ(config.name(), "fake");
    ASSERT_EQ(metadata.versions_size(), 1);
    EXPECT_EQ(metadata.versions(0), "3");
    EXPECT_GT(config.max_batch_size(), 0);
    EXPECT_TRUE(config.has_dynamic_batching());
    EXPECT_EQ(metadata.platform(), "sfmamba");
    EXPECT_FALSE(config.model_transaction_policy().decoupled());
    EXPECT_EQ(config.parameters().at("precision").string_value(), "FP32");
    ASSERT_EQ(config.input_size(), metadata.inputs_size());
    EXPECT_EQ(config.input(0).name(), metadata.inputs(0).name());
    EXPECT_EQ(config.input(0).data_type(), inference::TYPE_FP32);
    EXPECT_EQ(config.input(0).dims(0), 3);
    ASSERT_EQ(config.output_size(), metadata.outputs_size());
    for (int i = 0; i < config.output_size(); ++i) {
      const auto& output = config.output(i);
      const auto& tensor = metadata.outputs(i);
      EXPECT_EQ(output.name(), tensor.name());
      // The first dimension of the metadata's shape is the batch. The other
      // dimensions are equal.
      ASSERT_EQ(tensor.shape_size(), output.dims_size() + 1);
      EXPECT_EQ(tensor.shape(0), -1);
      EXPECT_TRUE(std::equal(output.dims().begin(), output.dims().end(),
                             tensor.shape().begin() + 1));
    }
    for (const char* method : {"ModelMetadata", "ModelConfig"}) {
      EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                             {absl::StrCat("method=\"", method, "\""),
                              R"(model="fake")"}),
                1)
          << method;
    }
  }
}

TEST_F(KserveServiceTest, TensorsComeInTheDescribedTypes) {
  Start(model::VisionTask::kDetection);
  inference::ModelMetadataRequest asked;
  asked.set_name("fake");
  inference::ModelMetadataResponse metadata;
  ASSERT_EQ(Ask(&Stub::ModelMetadata, asked, &metadata).code, StatusCode::OK);
  ModelInferRequest request = RequestFor("FP32", {1, 3, 48, 64});
  request.add_raw_input_contents(Raw(std::vector<float>(3 * 48 * 64, 0.1f)));
  const ModelInferResponse response = Answer(request);
  ASSERT_EQ(response.outputs_size(), metadata.outputs_size());
  for (int i = 0; i < response.outputs_size(); ++i) {
    EXPECT_EQ(response.outputs(i).name(), metadata.outputs(i).name());
    EXPECT_EQ(response.outputs(i).datatype(), metadata.outputs(i).datatype());
    ASSERT_EQ(response.outputs(i).shape_size(),
              metadata.outputs(i).shape_size());
    int64_t elements = 1;
    for (int d = 0; d < response.outputs(i).shape_size(); ++d) {
      elements *= response.outputs(i).shape(d);
      if (d > 0) {
        EXPECT_EQ(response.outputs(i).shape(d), metadata.outputs(i).shape(d));
      }
    }
    EXPECT_EQ(response.raw_output_contents(i).size(), 4 * elements);
  }
}

TEST_F(KserveServiceTest, CountsRequestsImagesAndBatches) {
  Start("max_batch_size: 4");
  EXPECT_EQ(Statistics().execution_count(), 0);
  const int64_t before = absl::ToUnixMillis(absl::Now());
  Answer(Fp32Request());
  ModelInferRequest two = RequestFor("UINT8", {2, 3, kSide, kSide});
  two.add_raw_input_contents(std::string(2 * kValues, '\1'));
  Answer(two);
  EXPECT_EQ(Classify(server::GreyRequest(1)).code, StatusCode::OK);
  Infer(Fp32Request(std::numeric_limits<float>::infinity()));
  const inference::ModelStatistics statistics = Statistics();
  EXPECT_EQ(statistics.name(), "fake");
  EXPECT_EQ(statistics.version(), "3");
  EXPECT_GE(statistics.last_inference(), before);
  EXPECT_EQ(statistics.inference_count(), 4);
  const inference::InferStatistics& requests = statistics.inference_stats();
  EXPECT_EQ(requests.success().count(), 3);
  EXPECT_EQ(requests.fail().count(), 1);
  EXPECT_GT(requests.success().ns(), requests.compute_infer().ns());
  for (const auto* stage :
       {&requests.queue(), &requests.compute_input(), &requests.compute_infer(),
        &requests.compute_output()}) {
    EXPECT_EQ(stage->count(), 3);
  }
  EXPECT_GT(requests.compute_infer().ns(), 0);
  uint64_t batches = 0, images = 0;
  for (const auto& batch : statistics.batch_stats()) {
    batches += batch.compute_infer().count();
    images += batch.batch_size() * batch.compute_infer().count();
    EXPECT_EQ(batch.compute_input().count(), batch.compute_infer().count());
    EXPECT_EQ(batch.compute_output().count(), batch.compute_infer().count());
  }
  EXPECT_EQ(batches, statistics.execution_count());
  EXPECT_EQ(images, 4);
  // A request without a name asks for the statistics of all models.
  inference::ModelStatisticsResponse all;
  EXPECT_EQ(
      Ask(&Stub::ModelStatistics, inference::ModelStatisticsRequest(), &all)
          .code,
      StatusCode::OK);
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(method="ModelStatistics")", R"(model="fake")"}),
            2);
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(method="ModelStatistics")", R"(model="")"}),
            1);
  ASSERT_EQ(all.model_stats_size(), 1);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      all.model_stats(0), statistics));
}

TEST_F(KserveServiceTest, ListsTheModelsAndTheirStates) {
  Start("", v1::ServerConfig(), /*load=*/false);
  const auto index = [this](bool ready) {
    inference::RepositoryIndexRequest request;
    request.set_ready(ready);
    inference::RepositoryIndexResponse response;
    EXPECT_EQ(Ask(&Stub::RepositoryIndex, request, &response).code,
              StatusCode::OK);
    return response;
  };
  ASSERT_EQ(index(false).models_size(), 1);
  EXPECT_EQ(index(false).models(0).state(), "LOADING");
  EXPECT_EQ(index(true).models_size(), 0);
  ASSERT_TRUE(server_->server().LoadModels().ok());
  ASSERT_EQ(index(true).models_size(), 1);
  EXPECT_EQ(index(true).models(0).name(), "fake");
  EXPECT_EQ(index(true).models(0).version(), "3");
  EXPECT_EQ(index(true).models(0).state(), "READY");
  EXPECT_EQ(server_->Sum("sfmamba_requests_total",
                         {R"(method="RepositoryIndex")", R"(model="")"}),
            7);
  inference::RepositoryIndexRequest other;
  other.set_repository_name("other");
  inference::RepositoryIndexResponse response;
  EXPECT_EQ(Ask(&Stub::RepositoryIndex, other, &response).field,
            "repository_name");
}

TEST_F(KserveServiceTest, DescribesNoModelThatIsNotThereOrNotReady) {
  Start("", v1::ServerConfig(), /*load=*/false);
  inference::ModelMetadataRequest request;
  inference::ModelMetadataResponse response;
  request.set_name("fake");
  EXPECT_EQ(Ask(&Stub::ModelMetadata, request, &response).reason,
            "MODEL_NOT_READY");
  request.set_name("other");
  EXPECT_EQ(Ask(&Stub::ModelMetadata, request, &response).reason,
            "MODEL_NOT_FOUND");
  request.set_name("");
  EXPECT_EQ(Ask(&Stub::ModelMetadata, request, &response).field, "name");
}

TEST_F(KserveServiceTest, LoadsNoModels) {
  Start();
  inference::RepositoryModelLoadRequest load;
  load.set_model_name("fake");
  inference::RepositoryModelLoadResponse loaded;
  const server::Ending ending = Ask(&Stub::RepositoryModelLoad, load, &loaded);
  EXPECT_EQ(ending.code, StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ending.reason, "MODEL_CONTROL_OFF");
  // The request is refused even if it contains a configuration, or a file with
  // any path.
  (*load.mutable_parameters())["config"].set_string_param("{}");
  (*load.mutable_parameters())["file:../../etc/passwd"].set_bytes_param("x");
  EXPECT_EQ(Ask(&Stub::RepositoryModelLoad, load, &loaded).reason,
            "MODEL_CONTROL_OFF");
  inference::RepositoryModelUnloadResponse unloaded;
  inference::RepositoryModelUnloadRequest unload;
  (*unload.mutable_parameters())["unload_dependents"].set_bool_param(true);
  EXPECT_EQ(Ask(&Stub::RepositoryModelUnload, unload, &unloaded).code,
            StatusCode::FAILED_PRECONDITION);
}

TEST_F(KserveServiceTest, LoadsAndUnloads) {
  StartExplicit();
  ASSERT_EQ(Unload("fake").code, StatusCode::OK);
  EXPECT_NE(Infer(Fp32Request()).code, StatusCode::OK);
  // Until the unloading has ended, the version's state is UNLOADING.
  WaitUntil([this] { return IndexOf("fake:3") == "UNAVAILABLE"; },
            "the end of the version");
  ASSERT_EQ(Load("fake").code, StatusCode::OK);
  EXPECT_EQ(Infer(Fp32Request()).code, StatusCode::OK);
  EXPECT_EQ(IndexOf("fake:3"), "READY");
  server::WriteModel(repository_, "fake", "4");
  ASSERT_EQ(Load("fake").code, StatusCode::OK);
  EXPECT_EQ(Answer(Fp32Request()).model_version(), "4");
}

TEST_F(KserveServiceTest, RefusesWhatALoadMayNotBring) {
  StartExplicit();
  inference::RepositoryModelLoadRequest request;
  request.set_model_name("fake");
  inference::RepositoryModelLoadResponse loaded;
  (*request.mutable_parameters())["file:1/../../x"].set_bytes_param("x");
  const server::Ending file = Ask(&Stub::RepositoryModelLoad, request, &loaded);
  EXPECT_EQ(file.code, StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(file.reason, "NOT_SUPPORTED");
  EXPECT_EQ(Load("").field, "model_name");
  EXPECT_EQ(Load("models/fake").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Load("../fake").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Load("none").code, StatusCode::NOT_FOUND);
  EXPECT_EQ(Unload("none").code, StatusCode::NOT_FOUND);
  request.clear_parameters();
  request.set_repository_name("other");
  EXPECT_EQ(Ask(&Stub::RepositoryModelLoad, request, &loaded).field,
            "repository_name");
  inference::RepositoryModelUnloadRequest unload;
  unload.set_model_name("other");
  (*unload.mutable_parameters())["all"].set_bool_param(true);
  inference::RepositoryModelUnloadResponse unloaded;
  EXPECT_EQ(Ask(&Stub::RepositoryModelUnload, unload, &unloaded).field,
            "parameters[\"all\"]");
  const std::string log = server_->Log();
  for (const char* line :
       {"\"code\":\"UNIMPLEMENTED\",\"reason\":\"NOT_SUPPORTED\"",
        "got \\\"other\\\", expected none: there is one repository",
        "\"action\":\"load\",\"what\":\"../fake\"",
        "\"action\":\"unload\",\"what\":\"other\""}) {
    EXPECT_NE(log.find(line), std::string::npos) << line << "\n" << log;
  }
  EXPECT_EQ(Infer(Fp32Request()).code, StatusCode::OK);
}

TEST_F(KserveServiceTest, HasNoSharedMemory) {
  Start();
  inference::SystemSharedMemoryRegisterResponse system;
  const server::Ending ending =
      Ask(&Stub::SystemSharedMemoryRegister,
          inference::SystemSharedMemoryRegisterRequest(), &system);
  EXPECT_EQ(ending.code, StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(ending.reason, "NOT_SUPPORTED");
  EXPECT_EQ(ending.message,
            "shared memory was removed: send tensors in the request");
  inference::CudaSharedMemoryStatusResponse cuda;
  EXPECT_EQ(Ask(&Stub::CudaSharedMemoryStatus,
                inference::CudaSharedMemoryStatusRequest(), &cuda)
                .reason,
            "NOT_SUPPORTED");
}

}  // namespace
}  // namespace sfmamba::kserve
