#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "server/errors/error.h"
#include "server/rest/kserve/request.h"

namespace sfmamba::rest {
namespace {

using LoadRequest = inference::RepositoryModelLoadRequest;
using UnloadRequest = inference::RepositoryModelUnloadRequest;

template <typename Request>
absl::StatusOr<Request> Read(const std::string& body) {
  Request request;
  const absl::Status status = ReadControlBody(body, &request);
  if (!status.ok()) return status;
  return request;
}

TEST(ControlBodyTest, AnEmptyBodyHasNoParameters) {
  for (const char* body : {"", "{}", R"({"parameters": {}})"}) {
    const auto request = Read<LoadRequest>(body);
    ASSERT_TRUE(request.ok()) << body;
    EXPECT_EQ(request->parameters_size(), 0);
  }
}

TEST(ControlBodyTest, ParametersKeepTheirTypes) {
  const auto load = Read<LoadRequest>(
      R"({"parameters": {"config": "{}", "n": -3, "b": false}})");
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_EQ(load->parameters().at("config").string_param(), "{}");
  EXPECT_EQ(load->parameters().at("n").int64_param(), -3);
  EXPECT_TRUE(load->parameters().at("b").has_bool_param());
  const auto unload =
      Read<UnloadRequest>(R"({"parameters": {"unload_dependents": true}})");
  ASSERT_TRUE(unload.ok()) << unload.status();
  EXPECT_TRUE(unload->parameters().at("unload_dependents").bool_param());
}

TEST(ControlBodyTest, WhatIsNoSuchObjectIsRefused) {
  for (const std::string& body :
       {std::string("["), std::string("null"), std::string("\xff"),
        std::string(R"({"parameters": [1]})"),
        std::string(R"({"parameters": {"config": {}}})"),
        std::string(R"({"parameters": {"config": 1.5}})"),
        std::string(R"({"parameters": {"config": null}})"),
        std::string(200000, '['), "{" + std::string(300 << 10, ' ') + "}"}) {
    EXPECT_EQ(Read<LoadRequest>(body).status().code(),
              absl::StatusCode::kInvalidArgument)
        << body.substr(0, 50);
  }
  const auto request =
      Read<UnloadRequest>(R"({"parameters": {"config": [1]}})");
  EXPECT_EQ(server::GetErrorDetail(request.status()).field,
            "parameters[\"config\"]");
  const std::string shown(60, 'x');
  EXPECT_EQ(server::GetErrorDetail(
                Read<LoadRequest>("{\"parameters\": {\"" + shown + "y\": []}}")
                    .status())
                .field,
            "parameters[\"" + shown + "\"]");
}

TEST(ControlBodyTest, IsReadUpToItsLimit) {
  constexpr size_t kMost = 256 << 10;
  EXPECT_TRUE(Read<LoadRequest>("{}" + std::string(kMost - 2, ' ')).ok());
  EXPECT_FALSE(Read<LoadRequest>("{}" + std::string(kMost - 1, ' ')).ok());
}

TEST(ControlBodyTest, OtherRequestsHaveNoBody) {
  EXPECT_TRUE(Read<inference::ModelReadyRequest>("no JSON").ok());
}

TEST(ControlBodyTest, AnIndexMayBeOfWhatIsReady) {
  EXPECT_TRUE(
      Read<inference::RepositoryIndexRequest>(R"({"ready": true})")->ready());
  EXPECT_FALSE(
      Read<inference::RepositoryIndexRequest>(R"({"ready": false})")->ready());
  EXPECT_FALSE(Read<inference::RepositoryIndexRequest>("{}")->ready());
}

}  // namespace
}  // namespace sfmamba::rest
