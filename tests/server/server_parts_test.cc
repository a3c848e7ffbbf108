// Tests which parts a server creates for its configuration, and how it ends
// them.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/proto_duration.h"
#include "base/steady_clock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "inference/grpc_service.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "server/server_config.h"
#include "sfmamba/v1/admin.grpc.pb.h"
#include "tests/server/picture.h"
#include "tests/server/running_server.h"
#include "tests/server/tracing/collector_stand_in.h"
#include "tests/testing/certificates.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

class ServerPartsTest : public testing::Test {
 protected:
  ServerPartsTest() {
    config_.set_model_repository(NewFolder("models"));
    WriteModel(config_.model_repository(), "fake", "1");
  }

  static grpc::Status Classify(RunningServer& server) {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    return server.stub().Classify(&context, GreyRequest(1), &response);
  }
  // Returns options for a separate server without HTTP, on free ports.
  static Server::Options OptionsOf(const v1::ServerConfig& config) {
    Server::Options options;
    options.config = WithDefaults(config);
    options.config.set_port(0);
    options.config.set_metrics_port(0);
    options.config.set_http_port(-1);
    return options;
  }
  // Returns how many threads of this process have this name.
  static int Threads(const std::string& name) {
    int count = 0;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(task.path() / "comm");
      std::string own;
      count += std::getline(file, own) && own == name;
    }
    return count;
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  v1::ServerConfig config_;
  observability::Logger log_{stderr, observability::LogLevel::kError,
                             observability::LogFormat::kText};
};

TEST_F(ServerPartsTest, PoolsHaveTheThreadsThatAreConfigured) {
  config_.set_decode_threads(3);
  RunningServer server(config_);
  WaitUntil([] { return Threads("finish") == 3; }, "threads that encode");
  WaitUntil([] { return Threads("decode") == 4; },
            "threads that decode, one of them for what takes little time");
}

TEST_F(ServerPartsTest, EachPortInUseIsNamed) {
  config_.set_health_port(0);
  config_.set_admin_port(0);
  RunningServer first(config_);
  Server::Options options = OptionsOf(config_);
  const auto error = [&] {
    return std::string(Server::Start(options, &log_).status().message());
  };
  options.config.set_health_port(first.server().health_port());
  EXPECT_TRUE(
      absl::StrContains(error(), absl::StrCat("the health port: 127.0.0.1:",
                                              first.server().health_port())))
      << error();
  options.config.set_health_port(0);
  options.config.set_admin_port(first.server().admin_port());
  EXPECT_TRUE(absl::StrContains(
      error(), absl::StrCat("the port of administration: 127.0.0.1:",
                            first.server().admin_port())))
      << error();
}

TEST_F(ServerPartsTest, SpansSayWhoseTheyAreAndAreCounted) {
  tracing::CollectorStandIn collector;
  config_.set_trace_endpoint(collector.url());
  config_.set_trace_ratio(1);
  RunningServer server(config_);
  EXPECT_TRUE(Classify(server).ok());
  WaitUntil(
      [&] { return server.Sum("sfmamba_trace_spans_exported_total", {}) >= 4; },
      "the spans of an image and its request");
  char host[256] = "";
  ASSERT_EQ(gethostname(host, sizeof(host) - 1), 0);
  const nlohmann::json resource =
      collector.requests()[0]["resourceSpans"][0]["resource"];
  EXPECT_EQ(tracing::AttributeOf(resource, "service.name"), "sfmamba");
  EXPECT_EQ(tracing::AttributeOf(resource, "service.version"), "test");
  EXPECT_EQ(tracing::AttributeOf(resource, "host.name"), host);
}

TEST_F(ServerPartsTest, SpansGoToTheCollectorOfTheAuthorityThatIsNamed) {
  const Certificate pair = MakeCertificate();
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs = {{pair.key, pair.pem}};
  tracing::CollectorStandIn collector(grpc::SslServerCredentials(tls));
  config_.set_trace_endpoint(
      absl::StrCat("https://127.0.0.1:", collector.port()));
  config_.set_trace_ca_file(WriteTestFile("collector.pem", pair.pem));
  config_.set_trace_ratio(1);
  RunningServer server(config_);
  EXPECT_TRUE(Classify(server).ok());
  EXPECT_TRUE(collector.AwaitSpans(4, kPatience)) << server.Log();
}

TEST_F(ServerPartsTest, SpansThatAreLostAreCounted) {
  config_.set_trace_endpoint("http://127.0.0.1:1");
  config_.set_trace_ratio(1);
  RunningServer server(config_);
  EXPECT_TRUE(Classify(server).ok());
  WaitUntil(
      [&] { return server.Sum("sfmamba_trace_spans_dropped_total", {}) >= 4; },
      "the spans of an image and its request");
}

TEST_F(ServerPartsTest, FailedHandshakesOfTheGrpcPortAreCountedAndLogged) {
  const Certificate pair = MakeCertificate();
  config_.set_tls_cert_file(WriteTestFile("cert", pair.pem));
  config_.set_tls_key_file(WriteTestFile("key", pair.key));
  RunningServer server(config_);
  EXPECT_EQ(Classify(server).error_code(), grpc::StatusCode::UNAVAILABLE)
      << "its client speaks no TLS";
  WaitUntil(
      [&] {
        return server.Sum("sfmamba_tls_handshake_failures_total", {}) >= 1;
      },
      "a failed handshake");
  WaitUntil(
      [&] {
        return absl::StrContains(server.Log(), "a TLS handshake has failed");
      },
      "its line in the log");
}

TEST_F(ServerPartsTest, TheConsoleIsThereUnlessItIsDisabled) {
  config_.set_http_port(0);
  for (const bool disabled : {false, true}) {
    config_.set_disable_console(disabled);
    RunningServer server(config_);
    EXPECT_EQ(HttpGet(server.server().http_port(), "/").empty(), disabled);
  }
}

TEST_F(ServerPartsTest, HttpAsksForCertificatesUnlessTheyAreOptional) {
  const Certificate pair = MakeCertificate();
  config_.set_tls_cert_file(WriteTestFile("cert", pair.pem));
  config_.set_tls_key_file(WriteTestFile("key", pair.key));
  config_.set_tls_client_ca_file(config_.tls_cert_file());
  config_.set_http_port(0);
  for (const bool optional : {false, true}) {
    config_.set_tls_client_optional(optional);
    RunningServer server(config_);
    httplib::SSLClient client("127.0.0.1", server.server().http_port());
    client.enable_server_certificate_verification(false);
    EXPECT_EQ(static_cast<bool>(client.Get("/livez")), optional);
  }
}

TEST_F(ServerPartsTest, HttpHasAsManyConnectionsAsAllowed) {
  config_.set_http_port(0);
  config_.set_max_http_connections(1);
  RunningServer server(config_);
  server.gate().Close();
  std::thread caller([&server] {
    httplib::Client client("127.0.0.1", server.server().http_port());
    client.set_read_timeout(absl::ToInt64Seconds(kTestPatience), 0);
    const auto answer = client.Post(
        "/v1/models/fake:classify",
        EncodePng(Gradient(FakeModel::kSide, FakeModel::kSide)), "image/png");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
  });
  server.gate().WaitForBatch();
  EXPECT_EQ(HttpGet(server.server().http_port(), "/livez"), "");
  server.gate().Open();
  Join(caller, "the answer of the connection that came first");
}

TEST_F(ServerPartsTest, ModelsAreUnloadedByHttpIfCallsMayControlThem) {
  config_.set_http_port(0);
  for (const char* control : {"poll", "poll+explicit"}) {
    config_.set_model_control(control);
    RunningServer server(config_);
    httplib::Client client("127.0.0.1", server.server().http_port());
    const auto answer = client.Post("/v2/repository/models/fake/unload", "{}",
                                    "application/json");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status == 200, absl::EndsWith(control, "explicit"))
        << answer->body;
  }
}

TEST_F(ServerPartsTest, AdministratorsSeeTheSettingsThatItStartedWith) {
  config_.set_log_level("error,server=info");
  config_.set_trace_ratio(0.25);
  RunningServer server(config_);
  grpc::ClientContext context;
  v1::ServerInfo info;
  ASSERT_TRUE(v1::AdminService::NewStub(server.channel())
                  ->GetServerInfo(&context, v1::GetServerInfoRequest(), &info)
                  .ok());
  EXPECT_EQ(info.settings().log_level(), "error,server=info");
  EXPECT_EQ(info.settings().trace_ratio(), 0.25);
}

TEST_F(ServerPartsTest, PortsForRequestsOpenOnceTheFirstLoadHasEnded) {
  config_.set_exit_on_load_error(false);
  Server::Options options = OptionsOf(config_);
  options.load = [](const repository::ModelDirectory&,
                    const repository::ModelRepository::CaptureFailed&)
      -> absl::StatusOr<std::unique_ptr<model::VisionModel>> {
    return absl::InternalError("no model");
  };
  options.config.set_http_port(0);
  options.config.set_health_port(0);
  const auto server = Server::Start(options, &log_);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_FALSE((*server)->is_open());
  EXPECT_EQ((*server)->http_port(), -1);
  EXPECT_GT((*server)->metrics_port(), 0);
  EXPECT_GT((*server)->health_port(), 0);
  EXPECT_FALSE((*server)->LoadModels().ok());
  EXPECT_GT((*server)->port(), 0);
  EXPECT_GT((*server)->http_port(), 0);
}

TEST_F(ServerPartsTest, NoPortOpensIfAnErrorOfALoadEndsTheServer) {
  std::ofstream(config_.model_repository() + "/fake/1/model.safetensors")
      << "other bytes";
  const auto server = Server::Start(OptionsOf(config_), &log_);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_FALSE((*server)->LoadModels().ok());
  EXPECT_FALSE((*server)->is_open());
}

TEST_F(ServerPartsTest, HttpIsRefusedBeforeItsConnectionsAreCut) {
  config_.mutable_drain_delay();
  Server::Options options = OptionsOf(config_);
  options.config.set_http_port(0);
  options.refusal_window = absl::Seconds(5);
  options.scrape_window = absl::ZeroDuration();
  const auto server = Server::Start(options, &log_);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_TRUE((*server)->OpenRequestPorts().ok());
  httplib::Client client("127.0.0.1", (*server)->http_port());
  std::thread stopper([&server] { EXPECT_TRUE((*server)->Shutdown()); });
  WaitUntil(
      [&client] {
        const auto answer = client.Get("/v1/models");
        return answer && absl::StrContains(answer->body, "\"DRAINING\"");
      },
      "a refusal over HTTP");
  Join(stopper, "the end of Shutdown()");
}

// This client has one connection, no retries and no health checks.
TEST_F(ServerPartsTest, AClientIsToldToGoElsewhereWhileItsCallsAreAnswered) {
  RunningServer server(config_);
  server.gate().Close();
  grpc::Status status;
  std::thread caller([&server, &status] {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    status = server.stub().Classify(&context, GreyRequest(1), &response);
  });
  server.gate().WaitForBatch();
  EXPECT_EQ(server.channel()->GetState(false), GRPC_CHANNEL_READY);
  std::thread stopper([&server] { EXPECT_TRUE(server.server().Shutdown()); });
  // The client receives GOAWAY although a call is still open.
  WaitUntil(
      [&server] {
        return server.channel()->GetState(false) != GRPC_CHANNEL_READY;
      },
      "the end of the connection");
  server.gate().Open();
  Join(caller, "the end of the call");
  EXPECT_TRUE(status.ok()) << status.error_message();
  Join(stopper, "the end of Shutdown()");
}

TEST_F(ServerPartsTest, ADrainTakesTheTimeOfEachOfItsSteps) {
  constexpr absl::Duration kStep = absl::Milliseconds(300);
  Server::Options options = OptionsOf(config_);
  options.config.set_http_port(0);
  base::ToProto(kStep, options.config.mutable_drain_delay());
  options.refusal_window = options.scrape_window = kStep;
  const auto server = Server::Start(options, &log_);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_TRUE((*server)->OpenRequestPorts().ok());
  const absl::Time start = base::SteadyNow();
  EXPECT_TRUE((*server)->Shutdown());
  EXPECT_GE(base::SteadyNow() - start, 3 * kStep);
}

// The ports are not open yet, so no client can be connected.
TEST_F(ServerPartsTest, AServerThatLoadsStopsWithoutADelay) {
  Server::Options options = OptionsOf(config_);
  base::ToProto(absl::Hours(1), options.config.mutable_drain_delay());
  options.scrape_window = absl::ZeroDuration();
  const auto server = Server::Start(options, &log_);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE((*server)->Shutdown());
}

}  // namespace
}  // namespace sfmamba::server
