#include "server/server.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/server_config.h"
#include "tests/server/running_server.h"
#include "tests/server/security/token_texts.h"
#include "tests/server/tracing/collector_stand_in.h"
#include "tests/testing/certificates.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    config_.set_model_repository(NewFolder("models"));
    WriteModel(config_.model_repository(), "fake", "1");
  }

  // Returns Check's answer for `name`. Returns SERVICE_UNKNOWN if Check fails
  // with NOT_FOUND.
  static HealthCheckResponse::ServingStatus Check(RunningServer& server,
                                                  const std::string& name) {
    grpc::ClientContext context;
    HealthCheckRequest request;
    request.set_service(name);
    HealthCheckResponse response;
    const grpc::Status status =
        server.health().Check(&context, request, &response);
    if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
      return HealthCheckResponse::SERVICE_UNKNOWN;
    }
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.status();
  }

  static bool Logged(const RunningServer& server, const std::string& text) {
    return server.Log().find(text) != std::string::npos;
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  v1::ServerConfig config_;
};

// A Watch call for `name`.
class Watch {
 public:
  Watch(RunningServer& server, const std::string& name) {
    HealthCheckRequest request;
    request.set_service(name);
    reader_ = server.health().Watch(&context_, request);
  }

  // Waits for the next status. Returns UNKNOWN if the stream has ended.
  HealthCheckResponse::ServingStatus Next() {
    TimeLimit limit("what a watch is told next");
    HealthCheckResponse response;
    return reader_->Read(&response) ? response.status()
                                    : HealthCheckResponse::UNKNOWN;
  }
  grpc::Status Finish() { return reader_->Finish(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

TEST_F(ServerTest, HealthFollowsTheLifeOfTheServer) {
  RunningServer server(config_, /*load=*/false);
  const std::string names[] = {"", "sfmamba.v1.VisionService", "models/fake"};
  Watch all(server, ""), service(server, names[1]), model(server, names[2]);
  Watch unknown(server, "models/other");
  EXPECT_EQ(unknown.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
  for (const std::string& name : names) {
    EXPECT_EQ(Check(server, name), HealthCheckResponse::NOT_SERVING) << name;
  }
  EXPECT_EQ(Check(server, "liveness"), HealthCheckResponse::SERVING);
  EXPECT_EQ(Check(server, "models/other"),
            HealthCheckResponse::SERVICE_UNKNOWN);
  for (Watch* watch : {&all, &service, &model}) {
    EXPECT_EQ(watch->Next(), HealthCheckResponse::NOT_SERVING);
  }
  ASSERT_TRUE(server.server().LoadModels().ok());
  for (Watch* watch : {&all, &service, &model}) {
    EXPECT_EQ(watch->Next(), HealthCheckResponse::SERVING);
  }
  EXPECT_TRUE(server.server().Shutdown());
  for (Watch* watch : {&all, &service, &model}) {
    EXPECT_EQ(watch->Next(), HealthCheckResponse::NOT_SERVING);
    EXPECT_EQ(watch->Next(), HealthCheckResponse::UNKNOWN);
    EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(ServerTest, IsNotAliveWhileABatchHangs) {
  RunningServer server(config_);
  server.gate().Close();
  grpc::Status status;
  std::thread caller([&server, &status] {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    status = server.stub().Classify(&context, GreyRequest(1), &response);
  });
  server.gate().WaitForBatch();
  EXPECT_EQ(Check(server, "liveness"), HealthCheckResponse::SERVING);
  Watch watch(server, "liveness");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  EXPECT_EQ(server.WaitForSum("sfmamba_model_alive", {}, 1), 1);
  server.AdvanceClock(absl::Hours(1));
  EXPECT_EQ(Check(server, "liveness"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(server.WaitForSum("sfmamba_model_alive", {}, 0), 0);
  server.gate().Open();
  Join(caller, "the end of the call");
  // The server sends the answer shortly before the batch ends.
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  while (Check(server, "liveness") != HealthCheckResponse::SERVING &&
         absl::Now() < give_up) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Check(server, "liveness"), HealthCheckResponse::SERVING);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVING);
}

TEST_F(ServerTest, ADeviceThatFailsForGoodEndsTheServing) {
  RunningServer server(config_);
  const std::string names[] = {"", "sfmamba.v1.VisionService", "models/fake",
                               "liveness"};
  std::vector<std::unique_ptr<Watch>> watches;
  for (const std::string& name : names) {
    watches.push_back(std::make_unique<Watch>(server, name));
    EXPECT_EQ(watches.back()->Next(), HealthCheckResponse::SERVING) << name;
  }
  server.gate().BreakDevice();
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    const Ending ending =
        EndingOf(server.stub().Classify(&context, GreyRequest(1), &response));
    EXPECT_EQ(ending.code, grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(ending.reason, "DEVICE_FAILED");
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(watches[i]->Next(), HealthCheckResponse::NOT_SERVING);
    EXPECT_EQ(Check(server, names[i]), HealthCheckResponse::NOT_SERVING);
  }
  EXPECT_EQ(server.device_failures(), 1);
}

TEST_F(ServerTest, ALostGpuIsLoggedOnce) {
  RunningServer server(config_);
  const auto look_twice = [&] {
    const int looks = server.memory_releases();
    WaitUntil([&] { return server.memory_releases() >= looks + 2; },
              "the housekeeping looked");
  };
  const auto logged = [&] {
    const std::vector<std::string> parts =
        absl::StrSplit(server.Log(), "a GPU has failed");
    return parts.size() - 1;
  };
  look_twice();
  EXPECT_EQ(logged(), 0);
  server.gate().SetDevice("7 x fake");
  look_twice();
  EXPECT_EQ(logged(), 1);
  EXPECT_NE(server.Log().find("7 x fake"), std::string::npos);
  look_twice();
  EXPECT_EQ(logged(), 1);
}

TEST_F(ServerTest, NothingIsServingAfterADeviceHasFailedWhileItWarmsUp) {
  RunningServer server(config_, /*load=*/false);
  server.gate().BreakDevice();
  EXPECT_FALSE(server.server().LoadModels().ok());
  for (const char* name : {"", "models/fake", "liveness"}) {
    EXPECT_EQ(Check(server, name), HealthCheckResponse::NOT_SERVING) << name;
  }
  EXPECT_EQ(server.device_failures(), 1);
}

TEST_F(ServerTest, ModelsAreAskedAgainAndAgainToGiveBackMemory) {
  RunningServer server(config_);
  WaitUntil([&] { return server.memory_releases() >= 2; }, "memory released");
}

TEST_F(ServerTest, AWatcherThatLeavesIsForgotten) {
  RunningServer server(config_);
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    auto reader = server.health().Watch(&context, HealthCheckRequest());
    HealthCheckResponse response;
    EXPECT_TRUE(reader->Read(&response));
    context.TryCancel();
    EXPECT_FALSE(reader->Read(&response));
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(server.server().Shutdown());
}

TEST_F(ServerTest, ShutdownLetsCallsFinish) {
  RunningServer server(config_);
  server.gate().Close();
  grpc::Status status;
  std::thread caller([&server, &status] {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    status = server.stub().Classify(&context, GreyRequest(1), &response);
  });
  server.gate().WaitForBatch();
  bool clean = false;
  std::thread stopper(
      [&server, &clean] { clean = server.server().Shutdown(); });
  server.gate().Open();
  Join(stopper, "the end of Shutdown()");
  Join(caller, "the end of the call");
  EXPECT_TRUE(clean);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(ServerTest, ShutdownSendsTheLastSpans) {
  tracing::CollectorStandIn collector;
  config_.set_trace_endpoint(collector.url());
  config_.set_trace_ratio(1);
  RunningServer server(config_);
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  EXPECT_TRUE(server.stub().Classify(&context, GreyRequest(1), &response).ok());
  EXPECT_TRUE(server.server().Shutdown());
  EXPECT_FALSE(server.server().is_sending_spans());
  EXPECT_GE(collector.spans().size(), 4);
}

TEST_F(ServerTest, SpansThatCannotBeSentAreLogged) {
  config_.set_trace_endpoint("http://127.0.0.1:1");
  config_.set_trace_ratio(1);
  RunningServer server(config_);
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  EXPECT_TRUE(server.stub().Classify(&context, GreyRequest(1), &response).ok());
  WaitUntil([&] { return Logged(server, "spans are dropped"); },
            "a line that spans are dropped");
}

TEST_F(ServerTest, ShutdownGivesUpAfterTheTimeout) {
  config_.mutable_drain_timeout()->set_nanos(50'000'000);
  RunningServer server(config_);
  server.gate().Close();
  grpc::Status status;
  std::thread caller([&server, &status] {
    grpc::ClientContext context;
    v1::ClassifyResponse response;
    status = server.stub().Classify(&context, GreyRequest(1), &response);
    // A running batch cannot be stopped, so the test lets it end.
    server.gate().Open();
  });
  server.gate().WaitForBatch();
  EXPECT_FALSE(server.server().Shutdown());
  Join(caller, "the end of the call");
  EXPECT_FALSE(status.ok());
}

TEST_F(ServerTest, APortInUseIsNamed) {
  RunningServer first(config_);
  observability::Logger log(stderr, observability::LogLevel::kError,
                            observability::LogFormat::kText);
  Server::Options options;
  options.config = WithDefaults(config_);
  options.config.set_metrics_port(0);
  // The default HTTP port may be in use.
  options.config.set_http_port(-1);
  options.config.set_port(first.server().port());
  absl::Status status = Server::Start(options, &log).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(
                absl::StrCat("gRPC port: 127.0.0.1:", first.server().port())),
            std::string::npos)
      << status;
  options.config.set_port(0);
  options.config.set_metrics_port(first.server().metrics_port());
  status = Server::Start(options, &log).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find(absl::StrCat("metrics port: 127.0.0.1:",
                                               first.server().metrics_port())),
            std::string::npos)
      << status;
}

TEST_F(ServerTest, AModelThatDoesNotLoadIsUnavailable) {
  WriteModel(config_.model_repository(), "broken", "1");
  std::ofstream(config_.model_repository() + "/broken/1/model.safetensors")
      << "other bytes";
  config_.set_exit_on_load_error(false);
  RunningServer server(config_, /*load=*/false);
  const absl::Status status = server.server().LoadModels();
  EXPECT_NE(status.message().find("models/broken/versions/1"),
            std::string::npos)
      << status;
  EXPECT_EQ(Check(server, "models/broken"), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(Check(server, "models/fake"), HealthCheckResponse::SERVING);
  EXPECT_EQ(Check(server, ""), HealthCheckResponse::SERVING);
  v1::ClassifyRequest request = GreyRequest(1);
  request.set_model("broken");
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  const Ending ending =
      EndingOf(server.stub().Classify(&context, request, &response));
  EXPECT_EQ(ending.code, grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ending.reason, "MODEL_NOT_READY");
  EXPECT_EQ(ending.metadata.at("state"), "UNAVAILABLE");
  EXPECT_EQ(
      server.WaitForSum("sfmamba_model_state",
                        {R"(model="broken")", R"(state="UNAVAILABLE")"}, 1),
      1);
}

TEST_F(ServerTest, WithoutAModelThatLoadsNothingIsServed) {
  std::ofstream(config_.model_repository() + "/fake/1/model.safetensors")
      << "other bytes";
  config_.set_exit_on_load_error(false);
  RunningServer server(config_, /*load=*/false);
  EXPECT_FALSE(server.server().LoadModels().ok());
  EXPECT_EQ(Check(server, ""), HealthCheckResponse::NOT_SERVING);
}

TEST_F(ServerTest, LoadingStopsWhenAsked) {
  RunningServer server(config_, /*load=*/false);
  EXPECT_EQ(server.server().LoadModels([] { return true; }).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(Check(server, ""), HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(server.server().Shutdown());
}

TEST_F(ServerTest, MetricsHoldEveryNameAndPleasePromtool) {
  RunningServer server(config_);
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  ASSERT_TRUE(server.stub().Classify(&context, GreyRequest(1), &response).ok());
  const std::string text = server.Exposition();
  for (const char* name : {"build_info",
                           "requests_total",
                           "request_duration_seconds_bucket",
                           "stage_duration_seconds_bucket",
                           "items_total",
                           "batches_total",
                           "batch_items_bucket",
                           "batch_fold_occupancy_ratio_bucket",
                           "padding_items_total",
                           "queue_items",
                           "queue_bytes",
                           "queue_oldest_age_seconds",
                           "in_flight_requests",
                           "decode_threads_busy",
                           "decode_queue_items",
                           "image_pixels_bucket",
                           "request_bytes_bucket",
                           "memory_budget_bytes",
                           "memory_held_bytes",
                           "model_state",
                           "model_load_duration_seconds_bucket"}) {
    EXPECT_NE(text.find(absl::StrCat("\nsfmamba_", name)), std::string::npos)
        << name;
  }
  if (std::system("promtool --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool (Debian package prometheus) is not installed";
  }
  const std::string path = NewFolder("metrics") + "/metrics.txt";
  std::ofstream(path) << text;
  EXPECT_EQ(std::system(("promtool check metrics < " + path).c_str()), 0);
}

TEST_F(ServerTest, TheLogSaysHowManyRefusalsItLeftOut) {
  RunningServer server(config_);
  const auto refuse = [&server] {
    for (int i = 0; i < 20; ++i) {
      grpc::ClientContext context;
      v1::ClassifyResponse response;
      server.stub().Classify(&context, v1::ClassifyRequest(), &response);
    }
    return Logged(server, "requests were refused");
  };
  WaitUntil(refuse, "a line that counts refusals");
}

TEST_F(ServerTest, ChangesOfTokensAndWhoHasNoneAreCounted) {
  const std::string good = security::ClientText("me", "a token", "INFER");
  const std::string tokens = WriteTestFile("tokens", good);
  config_.set_token_file(tokens);
  RunningServer server(config_);
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  EXPECT_EQ(
      server.stub().Classify(&context, GreyRequest(1), &response).error_code(),
      grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(server.Sum("sfmamba_unauthorized_total", {}), 1);
  const std::string files = "files=\"tokens\"";
  WriteTestFile("tokens", "no tokens");
  WaitUntil([&] { return Logged(server, "changed files cannot be used"); },
            "a line that the tokens are wrong");
  EXPECT_EQ(server.Sum("sfmamba_security_reloads_total",
                       {files, "outcome=\"kept_old\""}),
            1);
  WriteTestFile("tokens", good + "# changed");
  WaitUntil([&] { return Logged(server, "changed files are used"); },
            "a line that the tokens are taken");
  EXPECT_EQ(server.Sum("sfmamba_security_reloads_total",
                       {files, "outcome=\"taken\""}),
            1);
}

TEST_F(ServerTest, TheEndOfItsCertificateIsAMetricAndLoggedOncePast) {
  for (const bool expired : {false, true}) {
    CertificateOptions options;
    options.expired = expired;
    const Certificate pair = MakeCertificate(options);
    config_.set_tls_cert_file(WriteTestFile("cert", pair.pem));
    config_.set_tls_key_file(WriteTestFile("key", pair.key));
    RunningServer server(config_);
    const double end =
        server.Sum("sfmamba_tls_certificate_expiry_timestamp_seconds", {});
    EXPECT_GT(end, absl::ToUnixSeconds(absl::Now() - absl::Hours(48)));
    EXPECT_EQ(end < absl::ToUnixSeconds(absl::Now()), expired);
    EXPECT_EQ(Logged(server, "the certificate has expired"), expired);
  }
}

TEST_F(ServerTest, UnknownPathsAreNotServed) {
  RunningServer server(config_);
  EXPECT_EQ(HttpGet(server.server().metrics_port(), "/other"), "");
}

}  // namespace
}  // namespace sfmamba::server
