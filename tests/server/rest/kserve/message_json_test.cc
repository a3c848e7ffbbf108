#include <limits>

#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "inference/model_config.pb.h"
#include "nlohmann/json.hpp"
#include "server/rest/kserve/response.h"

namespace sfmamba::rest {
namespace {

nlohmann::json Json(const google::protobuf::Message& message) {
  return nlohmann::json::parse(MessageJson(message));
}

TEST(KserveMessageJsonTest, NumbersOf64BitsAreNumbers) {
  inference::ModelStatistics statistics;
  statistics.set_name("a \"b\"");
  statistics.set_last_inference(std::numeric_limits<uint64_t>::max());
  statistics.mutable_inference_stats()->mutable_queue()->set_count(7);
  statistics.add_batch_stats()->set_batch_size(2);
  const nlohmann::json json = Json(statistics);
  EXPECT_EQ(json["name"], "a \"b\"");
  EXPECT_EQ(json["last_inference"], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(json["inference_count"], 0);
  EXPECT_EQ(json["inference_stats"]["queue"]["count"], 7);
  EXPECT_EQ(json["inference_stats"]["queue"]["ns"], 0);
  EXPECT_EQ(json["batch_stats"][0]["batch_size"], 2);
}

TEST(KserveMessageJsonTest, EveryFormOfFieldIsWritten) {
  inference::ModelConfig config;
  config.set_max_batch_size(-1);
  inference::ModelInput* input = config.add_input();
  input->set_data_type(inference::TYPE_FP32);
  input->add_dims(-1);
  input->add_dims(224);
  config.mutable_dynamic_batching()->add_preferred_batch_size(4);
  (*config.mutable_parameters())["key"].set_string_value("value");
  const nlohmann::json json = Json(config);
  EXPECT_EQ(json["max_batch_size"], -1);
  EXPECT_EQ(json["input"][0]["data_type"], "TYPE_FP32");
  EXPECT_EQ(json["input"][0]["dims"], nlohmann::json({-1, 224}));
  EXPECT_EQ(json["input"][0]["optional"], false);
  EXPECT_EQ(json["output"], nlohmann::json::array());
  EXPECT_EQ(json["dynamic_batching"]["preferred_batch_size"][0], 4);
  EXPECT_EQ(json["parameters"]["key"]["string_value"], "value");
  // Messages that are not set do not appear in the JSON.
  EXPECT_FALSE(json.contains("model_transaction_policy"));
  config.clear_dynamic_batching();
  EXPECT_FALSE(Json(config).contains("dynamic_batching"));
}

TEST(KserveMessageJsonTest, TextsThatAreNoUtf8DoNotSpoilTheJson) {
  inference::RepositoryIndexResponse index;
  index.add_models()->set_reason("got \"\xff\"");
  EXPECT_EQ(Json(index)["models"][0]["reason"], "got \"\"");
}

TEST(KserveMessageJsonTest, EntriesOfMapsHaveNumbersToo) {
  inference::ModelInferResponse response;
  (*response.mutable_parameters())["a"].set_int64_param(7);
  EXPECT_EQ(Json(response)["parameters"]["a"]["int64_param"], 7);
}

}  // namespace
}  // namespace sfmamba::rest
