#include "server/server_config.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/host/processors.h"
#include "server/http/http_options.h"
#include "server/observability/log.h"
#include "server/settings/setting.h"

namespace sfmamba::server {
namespace {

std::string WriteConfig(const std::string& text) {
  const std::string path = testing::TempDir() + "/server.textproto";
  std::ofstream(path) << text;
  return path;
}

TEST(ServerConfigTest, WhatIsSetWinsOverTheDefaults) {
  auto config = ReadServerConfig(WriteConfig(
      "model_repository: 'm' port: 0 default_deadline { nanos: 5000000 }"));
  ASSERT_TRUE(config.ok()) << config.status();
  const v1::ServerConfig all = WithDefaults(*config);
  EXPECT_EQ(all.port(), 0);
  EXPECT_EQ(all.metrics_port(), 8002);
  EXPECT_EQ(all.http_port(), 8000);
  EXPECT_EQ(all.default_deadline().seconds(), 0);
  EXPECT_EQ(all.default_deadline().nanos(), 5'000'000);
  EXPECT_EQ(all.max_deadline().seconds(), 120);
  EXPECT_GE(all.decode_threads(), 1);
  EXPECT_LT(all.decode_threads(), std::max(2, UsableProcessors()))
      << "some processors are the models'";
  EXPECT_TRUE(all.exit_on_load_error());
  EXPECT_TRUE(Validate(all).ok()) << Validate(all);
}

TEST(ServerConfigTest, ClientsWithTokensHaveAQuota) {
  v1::ServerConfig config;
  EXPECT_EQ(WithDefaults(config).max_client_items(), 0);
  config.set_token_file("t");
  EXPECT_EQ(WithDefaults(config).max_client_items(), 256);
  config.set_max_client_items(3);
  EXPECT_EQ(WithDefaults(config).max_client_items(), 3);
}

TEST(ServerConfigTest, EachNumberHasADefaultInItsRange) {
  v1::ServerConfig config = WithDefaults({});
  config.set_model_repository("m");
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  for (int i = 0; i < config.GetDescriptor()->field_count(); ++i) {
    const auto& field = *config.GetDescriptor()->field(i);
    if (SettingOf(field).range().empty() || field.is_repeated()) continue;
    EXPECT_TRUE(config.GetReflection()->HasField(config, &field))
        << field.name();
  }
}

TEST(ServerConfigTest, TheDefaultBudgetFitsBesideTheModelsOrTheStartIsRefused) {
  // The size of the default models.
  constexpr int64_t kModels = int64_t{200} << 20;
  for (int64_t mib = 64; mib <= 65536; mib += mib / 4) {
    const ProcessMemory memory = {mib << 20, kModels};
    v1::ServerConfig config;
    config.set_model_repository("m");
    config = WithDefaults(config, memory);
    EXPECT_TRUE(Validate(config).ok()) << mib << ": " << Validate(config);
    const absl::Status status =
        CheckMemory(memory, /*default_budget=*/true, config);
    EXPECT_EQ(status.ok(), mib > 424) << mib << ": " << status;
    if (!status.ok()) continue;
    // A server without models takes 150 MiB.
    EXPECT_LT(config.memory_budget_bytes() + kModels + (150 << 20),
              memory.limit / 16 * 15)
        << mib;
    EXPECT_LE(config.memory_budget_bytes(), int64_t{4} << 30);
  }
}

TEST(ServerConfigTest, ABudgetThatDoesNotFitSaysWhatWouldBeEnough) {
  const ProcessMemory memory = {int64_t{384} << 20, int64_t{200} << 20};
  v1::ServerConfig config = WithDefaults({}, memory);
  const absl::Status status =
      CheckMemory(memory, /*default_budget=*/true, config);
  EXPECT_THAT(status.message(), testing::HasSubstr("a limit of 453 MiB"));
  config.set_memory_budget_bytes(512 << 20);
  EXPECT_FALSE(CheckMemory(memory, /*default_budget=*/false, config).ok());
  config.set_memory_budget_bytes(300 << 20);  // A budget that is set may fit.
  EXPECT_TRUE(CheckMemory(memory, /*default_budget=*/false, config).ok());
}

TEST(ServerConfigTest, TheMemoryBudgetFollowsTheMachineAndTheMessages) {
  EXPECT_EQ(WithDefaults({}, {int64_t{16} << 30, 0}).memory_budget_bytes(),
            int64_t{4} << 30);
  EXPECT_EQ(WithDefaults({}, {int64_t{1} << 30, 0}).memory_budget_bytes(),
            512 << 20);
  // If the process may use little memory, the default limits for messages and
  // images are lower.
  const v1::ServerConfig small = WithDefaults({}, {512 << 20, 200 << 20});
  EXPECT_EQ(small.max_message_bytes(), small.memory_budget_bytes() / 8);
  EXPECT_EQ(small.max_image_bytes(), small.max_message_bytes());
  EXPECT_EQ(WithDefaults({}, {}).max_message_bytes(), 64 << 20);
  v1::ServerConfig config;
  config.set_max_message_bytes(1 << 30);
  EXPECT_EQ(WithDefaults(config).memory_budget_bytes(), int64_t{8} << 30);
  config.set_max_message_bytes(1 << 20);
  config.set_memory_budget_bytes(800 << 20);
  EXPECT_EQ(WithDefaults(config).memory_budget_bytes(), 800 << 20);
  EXPECT_EQ(WithDefaults(config).decode_memory_budget_bytes(), 300 << 20);
}

TEST(ServerConfigTest, ACollectorIsAUrl) {
  v1::ServerConfig config = WithDefaults({});
  config.set_model_repository("m");
  config.set_trace_endpoint("http://collector:4317");
  EXPECT_TRUE(Validate(config).ok()) << Validate(config);
  config.set_trace_endpoint("collector:4317");
  EXPECT_EQ(
      Validate(config).message(),
      "trace_endpoint: got \"collector:4317\", expected a URL that begins "
      "with http:// or https://");
  config.set_trace_endpoint("https://collector:4317");
  config.set_trace_ca_file("/missing/ca.pem");
  const absl::Status unread = Validate(config);
  EXPECT_THAT(unread.message(),
              testing::HasSubstr("trace_ca_file: \"/missing/ca.pem\""));
  config.clear_trace_ca_file();
  config.clear_trace_endpoint();
  config.set_trace_ratio(1.5);
  EXPECT_FALSE(Validate(config).ok());
}

TEST(ServerConfigTest, EachFormOfTheLogCanBeWritten) {
  const auto& field =
      *v1::ServerConfig::descriptor()->FindFieldByName("log_format");
  for (const std::string& name : SettingOf(field).one_of()) {
    EXPECT_TRUE(observability::ParseLogFormat(name).ok()) << name;
  }
}

TEST(ServerConfigTest, UnknownFieldIsAnErrorWithItsPlace) {
  auto config = ReadServerConfig(WriteConfig("port: 1\nprot: 2\n"));
  ASSERT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(config.status().message().find("line 2"), std::string::npos)
      << config.status();
  EXPECT_NE(config.status().message().find("prot"), std::string::npos);
}

TEST(ServerConfigTest, ARemovedFieldIsAnErrorWithItsPlaceAndReplacement) {
  const auto config =
      ReadServerConfig(WriteConfig("port: 1\nself_check_period: 10s\n"));
  ASSERT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"line 2", "self_check_period was removed: let a"}) {
    EXPECT_NE(config.status().message().find(part), std::string::npos)
        << config.status();
  }
}

TEST(ServerConfigTest, PartsHaveTheDefaultsOfTheSettings) {
  const v1::ServerConfig config = WithDefaults({});
  const http::HttpOptions http;
  EXPECT_EQ(http.max_connections, config.max_http_connections());
  EXPECT_EQ(http.max_body_bytes, config.max_message_bytes());
  EXPECT_EQ(http.answer_time, base::FromProto(config.send_timeout()));
}

TEST(ServerConfigTest, AFileHasAtMostAMebibyte) {
  std::string text = "port: 1 #";
  text.resize(1 << 20, 'x');
  EXPECT_TRUE(ReadServerConfig(WriteConfig(text)).ok());
  EXPECT_FALSE(ReadServerConfig(WriteConfig(text + "x")).ok());
}

TEST(ServerConfigTest, MissingFileIsAnError) {
  const absl::Status status = ReadServerConfig("/nonexistent").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "config: /nonexistent: got \"No such file or directory\", expected "
            "a file that can be read");
}

TEST(ServerConfigTest, EachRangeIsChecked) {
  const auto check = [](const std::string& field, const std::string& text) {
    auto config = ReadServerConfig(WriteConfig(text));
    ASSERT_TRUE(config.ok()) << config.status();
    if (field != "model_repository") config->set_model_repository("m");
    const absl::Status status = Validate(WithDefaults(*config));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(status.message().substr(0, field.size()), field) << status;
  };
  check("port", "port: 65536");
  check("metrics_port", "metrics_port: -1");
  check("http_port", "http_port: -2");
  check("http_port", "http_port: 65536");
  check("max_http_connections", "max_http_connections: -1");
  check("decode_threads", "decode_threads: -1");
  check("max_message_bytes", "max_message_bytes: 4294967296");
  check("max_message_bytes", "max_message_bytes: 4611686018427387904");
  check("max_message_bytes", "max_message_bytes: -4611686018427387904");
  check("max_image_bytes: got 100000000, expected at most 67108864, as",
        "max_image_bytes: 100000000");
  check("drain_delay", "drain_delay { seconds: -1 }");
  check(
      "memory_budget_bytes: got 536870911, expected at least 536870912, 8 "
      "times",
      "memory_budget_bytes: 536870911");
  check("memory_budget_bytes",
        "memory_budget_bytes: 999999999 max_message_bytes: 125000000");
  check("decode_memory_budget_bytes: got 500000001, expected at most 500000000",
        "memory_budget_bytes: 1000000000 decode_memory_budget_bytes: "
        "500000001");
  check("default_deadline", "default_deadline {}");
  check("log_level", "log_level: 'loud'");
  check("log_level", "log_level: 'info,modells=debug'");
  check("decode_timeout", "decode_timeout {}");
  check("tune_budget", "tune_budget { nanos: -1 }");
  check("device", "device: 'gpu'");
  check("gpus", "gpus: [0, -1]");
  check("gpus: got 0,1, expected none", "gpus: [0, 1] device: 'cpu'");
  check("slots_per_gpu", "slots_per_gpu: -1");
  check("log_format", "log_format: 'xml'");
  check("tls_cert_file", "tls_cert_file: 'x'");
  check("tls_cert_file", "tls_key_file: 'x'");
  check("tls_client_ca_file", "tls_client_ca_file: 'x'");
  check("tls_client_optional", "tls_client_optional: true");
  for (const char* origin :
       {"", "a.org", "https://", "https://a.org/", "https://a.org/page"}) {
    check("allowed_origins: got",
          absl::StrCat("allowed_origins: '", origin, "'"));
  }
  check("max_client_items", "max_client_items: -1");
  check("client_items_per_second", "client_items_per_second: nan");
  check("health_port", "health_port: -2");
  check("startup_models: got \"a,b\" with the model_control \"none\", expected",
        "startup_models: 'a,b'");
  check("startup_models", "startup_models: 'a' model_control: 'poll'");
  check("model: got \"x\", expected NAME=FOLDER", "model: 'x'");
  check("model: got \"x=\", expected NAME=FOLDER", "model: 'x='");
  check("model: got \"../x=y\", expected NAME=FOLDER", "model: '../x=y'");
  check("model: got \"x\" twice", "model: ['x=y', 'z=y', 'x=z=']");
  check("model_repository", "port: 1");
}

TEST(ServerConfigTest, SizesMayBeAsLargeAsTheirBounds) {
  v1::ServerConfig config;
  config.set_model_repository("m");
  config.set_max_message_bytes(100 << 20);
  config.set_max_image_bytes(config.max_message_bytes());
  config.set_memory_budget_bytes(8 * config.max_message_bytes());
  config.set_decode_memory_budget_bytes(config.memory_budget_bytes() / 2);
  const absl::Status status = Validate(WithDefaults(config));
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace sfmamba::server
