#include <string>

#include "gtest/gtest.h"
#include "server/api/kserve/repository_control.h"
#include "server/errors/error.h"

namespace sfmamba::kserve {
namespace {

// Returns the result of checking a load request that has the parameter `key`.
absl::Status Check(const std::string& key) {
  inference::RepositoryModelLoadRequest request;
  (*request.mutable_parameters())[key].set_string_param("{}");
  return CheckParameters(request);
}

std::string FieldOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return server::GetErrorDetail(status).field;
}

TEST(LoadParametersTest, NoneAreNeeded) {
  EXPECT_TRUE(CheckParameters(inference::RepositoryModelLoadRequest()).ok());
}

TEST(LoadParametersTest, ConfigurationsAndFilesAreNotSupported) {
  for (const char* key : {"config", "file:1/model.bin"}) {
    const absl::Status status = Check(key);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << key;
    EXPECT_EQ(server::GetErrorDetail(status).reason, "NOT_SUPPORTED");
  }
  EXPECT_NE(Check("config").message().find("config.textproto"),
            std::string::npos)
      << "what to use instead";
}

TEST(LoadParametersTest, OthersAreRefused) {
  EXPECT_EQ(FieldOf(Check("other")), "parameters[\"other\"]");
  const std::string shown(60, 'x');
  EXPECT_EQ(FieldOf(Check(shown + "y")), "parameters[\"" + shown + "\"]");
}

TEST(UnloadParametersTest, DependentsAreNone) {
  inference::RepositoryModelUnloadRequest request;
  EXPECT_TRUE(CheckParameters(request).ok());
  (*request.mutable_parameters())["unload_dependents"].set_bool_param(true);
  EXPECT_TRUE(CheckParameters(request).ok());
  (*request.mutable_parameters())["unload_dependents"].set_int64_param(1);
  EXPECT_EQ(FieldOf(CheckParameters(request)),
            "parameters[\"unload_dependents\"]");
  request.clear_parameters();
  (*request.mutable_parameters())["x"].set_bool_param(true);
  EXPECT_EQ(FieldOf(CheckParameters(request)), "parameters[\"x\"]");
}

}  // namespace
}  // namespace sfmamba::kserve
