#include <string>

#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "gtest/gtest.h"
#include "server/errors/error.h"
#include "server/kserve/repository_control.h"

namespace sfmamba::kserve {
namespace {

absl::StatusOr<std::optional<v1::Batching>> ReadConfig(
    const std::string& json) {
  inference::RepositoryModelLoadRequest request;
  request.set_model_name("m");
  (*request.mutable_parameters())["config"].set_string_param(json);
  return ReadLoadParameters(request);
}

std::string FieldOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return server::GetErrorDetail(status).field;
}

TEST(LoadParametersTest, NoneSayNothing) {
  const auto batching = ReadLoadParameters({});
  ASSERT_TRUE(batching.ok());
  EXPECT_FALSE(batching->has_value());
}

TEST(LoadParametersTest, LimitsOfBatchesAreTaken) {
  const auto batching = ReadConfig(R"({
    "name": "m", "max_batch_size": 4, "dynamic_batching": {
      "max_queue_delay_microseconds": "1500",
      "default_queue_policy": {"max_queue_size": 64}}})");
  ASSERT_TRUE(batching.ok()) << batching.status();
  ASSERT_TRUE(batching->has_value());
  EXPECT_EQ((*batching)->max_batch_size(), 4);
  EXPECT_EQ((*batching)->max_queue_items(), 64);
  EXPECT_EQ(base::FromProto((*batching)->max_queue_delay()),
            absl::Microseconds(1500));
}

TEST(LoadParametersTest, TheLargestLimitsAreTaken) {
  const auto read = [](const std::string& items, const std::string& delay) {
    return ReadConfig(absl::StrCat(
        R"({"dynamic_batching": {"max_queue_delay_microseconds": ")", delay,
        R"(", "default_queue_policy": {"max_queue_size": )", items, "}}}"));
  };
  const auto most = read("2147483647", "86400000000");
  ASSERT_TRUE(most.ok()) << most.status();
  EXPECT_EQ((*most)->max_queue_items(), 2147483647);
  EXPECT_EQ(base::FromProto((*most)->max_queue_delay()), absl::Hours(24));
  EXPECT_EQ(FieldOf(read("2147483648", "0").status()),
            "parameters[\"config\"].dynamic_batching.default_queue_policy."
            "max_queue_size");
  EXPECT_EQ(FieldOf(read("1", "86400000001").status()),
            "parameters[\"config\"].dynamic_batching."
            "max_queue_delay_microseconds");
}

TEST(LoadParametersTest, NothingElseOfAConfigIs) {
  for (const auto& [json, field] :
       std::vector<std::pair<std::string, std::string>>{
           {R"({"platform": "x"})", ".platform"},
           {R"({"name": "other"})", ".name"},
           {R"({"instance_group": [{"count": 4}]})", ".instance_group"},
           {R"({"dynamic_batching": {"preferred_batch_size": [4]}})",
            ".dynamic_batching.preferred_batch_size"},
           {R"({"dynamic_batching": {"default_queue_policy":
               {"timeout_action": "DELAY"}}})",
            ".dynamic_batching.default_queue_policy.timeout_action"},
           {R"({"dynamic_batching": {"default_queue_policy":
               {"max_queue_size": 4294967295}}})",
            ".dynamic_batching.default_queue_policy.max_queue_size"},
           {R"({"dynamic_batching": {"max_queue_delay_microseconds":
               "18446744073709551615"}})",
            ".dynamic_batching.max_queue_delay_microseconds"},
       }) {
    EXPECT_EQ(FieldOf(ReadConfig(json).status()),
              "parameters[\"config\"]" + field)
        << json;
  }
}

TEST(LoadParametersTest, WhatIsNoConfigIsRefused) {
  for (const std::string& json :
       {std::string(), std::string("["), std::string("[]"), std::string("1"),
        std::string(R"({"unknown": 1})"),
        std::string(R"({"max_batch_size": 1e99})"),
        std::string(R"({"max_batch_size": "many"})"), std::string(100000, '['),
        std::string(100000, '{')}) {
    EXPECT_EQ(FieldOf(ReadConfig(json).status()), "parameters[\"config\"]")
        << json.substr(0, 40);
  }
}

TEST(LoadParametersTest, FilesAreNotSupported) {
  inference::RepositoryModelLoadRequest request;
  (*request.mutable_parameters())["file:1/model.bin"].set_bytes_param("x");
  const auto batching = ReadLoadParameters(request);
  EXPECT_EQ(batching.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(server::GetErrorDetail(batching.status()).reason, "NOT_SUPPORTED");
}

TEST(LoadParametersTest, OtherParametersAndTypesAreRefused) {
  inference::RepositoryModelLoadRequest request;
  (*request.mutable_parameters())["other"].set_string_param("x");
  EXPECT_EQ(FieldOf(ReadLoadParameters(request).status()),
            "parameters[\"other\"]");
  request.clear_parameters();
  const std::string shown(60, 'x');
  (*request.mutable_parameters())[shown + "y"].set_string_param("x");
  EXPECT_EQ(FieldOf(ReadLoadParameters(request).status()),
            "parameters[\"" + shown + "\"]");
  request.clear_parameters();
  (*request.mutable_parameters())["config"].set_int64_param(3);
  EXPECT_EQ(FieldOf(ReadLoadParameters(request).status()),
            "parameters[\"config\"]");
}

TEST(UnloadParametersTest, DependentsAreNone) {
  inference::RepositoryModelUnloadRequest request;
  EXPECT_TRUE(CheckUnloadParameters(request).ok());
  (*request.mutable_parameters())["unload_dependents"].set_bool_param(true);
  EXPECT_TRUE(CheckUnloadParameters(request).ok());
  (*request.mutable_parameters())["unload_dependents"].set_int64_param(1);
  EXPECT_EQ(FieldOf(CheckUnloadParameters(request)),
            "parameters[\"unload_dependents\"]");
  request.clear_parameters();
  (*request.mutable_parameters())["x"].set_bool_param(true);
  EXPECT_EQ(FieldOf(CheckUnloadParameters(request)), "parameters[\"x\"]");
}

}  // namespace
}  // namespace sfmamba::kserve
