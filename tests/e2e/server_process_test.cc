// Tests a real server process. Tests its exit codes, and what its clients see
// when it stops.

#include "tests/e2e/server_process.h"

#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <regex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/rpc/vision_client.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/victim.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

std::shared_ptr<grpc::Channel> Connect(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), arguments);
}

v1::ClassifyRequest GreyRequest(int grey) {
  v1::ClassifyRequest request;
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(80);
  pixels.set_height(72);
  pixels.set_format(v1::PixelBuffer::GRAY8);
  pixels.set_data(std::string(80 * 72, static_cast<char>(grey)));
  return request;
}

grpc::Status Classify(v1::VisionService::Stub& stub, int grey,
                      v1::ClassifyResponse* response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(60));
  return stub.Classify(&context, GreyRequest(grey), response);
}

constexpr char kServer[] = "server/sfmamba_server";
constexpr char kFaultyServer[] = "tests/e2e/faulty_server";

// Runs the server until it ends by itself. Returns its exit code.
int ExitCode(const std::vector<std::string>& flags, std::string* output,
             const std::string& binary = kServer) {
  ServerProcess server(flags, binary);
  const int code = server.Wait();
  // The server never logs this text, so this call waits for the end of the
  // output.
  server.WaitForLog("\n\n\n");
  *output = server.output();
  return code;
}

TEST(ServerProcessTest, ServesAndCounts) {
  ServerProcess server({"--model_repository=" + WriteTinyModel()});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  auto stub = v1::VisionService::NewStub(Connect(server));
  v1::ClassifyResponse first, second;
  ASSERT_TRUE(Classify(*stub, 50, &first).ok());
  ASSERT_TRUE(Classify(*stub, 50, &second).ok());
  EXPECT_EQ(first.model(), "models/tiny/versions/1");
  EXPECT_EQ(first.results(0).categories_size(), 5);
  EXPECT_EQ(first.SerializeAsString(), second.SerializeAsString());
  const auto samples = Samples(HttpGet(server.metrics_port(), "/metrics"));
  EXPECT_EQ(SumOf(samples, "sfmamba_requests_total", {R"(code="OK")"}), 2);
  EXPECT_EQ(SumOf(samples, "sfmamba_items_total", {R"(outcome="ok")"}), 2);
}

TEST(ServerProcessTest, ACallerAloneIsAnswered) {
  ServerProcess server({"--model_repository=" + WriteTinyModel()});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  Victim caller(server, absl::Milliseconds(5));
  absl::SleepFor(absl::Milliseconds(200));
  const Victim::Count count = caller.Stop();
  EXPECT_GT(count.sent, 1);
  EXPECT_EQ(count.answered, count.sent) << count.first_error;
  EXPECT_GT(server.resident_bytes(), 0);
  EXPECT_GE(server.peak_resident_bytes(), server.resident_bytes());
}

// gRPC stops its threads when the last client of a process is destroyed. Here
// each client is the only one, so each destructor stops the threads. This fails
// if one of these threads destroys the client's channel. VisionClient must
// therefore destroy its channel on the caller's thread.
TEST(ServerProcessTest, ClientsComeAndGo) {
  ServerProcess server({"--model_repository=" + WriteTinyModel()});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  for (int i = 0; i < 100; ++i) {
    absl::Notification done;
    client::VisionClient client(server.address());
    client.Classify(GreyRequest(50), absl::Seconds(60),
                    [&done](absl::StatusOr<v1::ClassifyResponse> response) {
                      EXPECT_TRUE(response.ok()) << response.status();
                      done.Notify();
                    });
    WaitFor(done, "the answer", kTestPatience);
  }
}

// Runs clients that call without pause. A client stops when a call fails with
// UNAVAILABLE, or when a GOAWAY cancels a call. A client that knows other
// servers would then switch to another one.
class Load {
 public:
  Load(const ServerProcess& server, int clients) : running_(clients) {
    for (int i = 0; i < clients; ++i) {
      threads_.emplace_back([this, channel = Connect(server), i] {
        Run(*v1::VisionService::NewStub(channel), i);
      });
    }
  }

  void Join() {
    for (std::thread& thread : threads_) {
      sfmamba::Join(thread, "a client", kTestPatience);
    }
  }
  // Blocks until `count` more calls have been answered.
  void WaitForAnswers(int count) {
    TimeLimit limit("the clients' answers", kTestPatience);
    const int enough = answered_.load() + count;
    while (answered_.load() < enough && running_.load() > 0) {
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  int answered() const { return answered_.load(); }
  // Returns the errors of calls, without the errors that make a client stop.
  std::vector<std::string> wrong() {
    absl::MutexLock lock(&mu_);
    return wrong_;
  }

 private:
  void Run(v1::VisionService::Stub& stub, int client) {
    for (int i = 0;; ++i) {
      v1::ClassifyResponse response;
      const grpc::Status status =
          Classify(stub, (client * 50 + i) % 256, &response);
      if (status.ok()) {
        answered_.fetch_add(1);
        continue;
      }
      // If the server's GOAWAY and a new call cross on the way, gRPC 1.51
      // cancels the call.
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE &&
          status.error_code() != grpc::StatusCode::CANCELLED) {
        absl::MutexLock lock(&mu_);
        wrong_.push_back(
            absl::StrCat(status.error_code(), ": ", status.error_message()));
      }
      break;
    }
    running_.fetch_sub(1);
  }

  std::atomic<int> answered_{0};
  std::atomic<int> running_;
  absl::Mutex mu_;
  std::vector<std::string> wrong_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> threads_;
};

TEST(ServerProcessTest, SigtermUnderLoadLosesNothing) {
  ServerProcess server({"--model_repository=" + WriteTinyModel(),
                        "--drain_delay=1s", "--drain_timeout=60s"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(120));
  auto health = grpc::health::v1::Health::NewStub(Connect(server));
  auto watch = health->Watch(&context, HealthCheckRequest());
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);

  Load load(server, 4);
  load.WaitForAnswers(20);
  server.Signal(SIGTERM);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  const int before = load.answered();
  load.WaitForAnswers(4);  // The server must still answer.
  EXPECT_GE(load.answered(), before + 4);
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  load.Join();
  EXPECT_EQ(load.wrong(), std::vector<std::string>{});
  EXPECT_EQ(server.Wait(), 0) << server.output();
}

TEST(ServerProcessTest, ACallBeyondTheDrainTimeoutIsCancelledAndTheCodeIs6) {
  ServerProcess server(
      {"--model_repository=" +
           WriteTinyModel("mode: THROUGHPUT max_queue_delay { seconds: 50 }"),
       "--profile_budget=0s", "--drain_delay=0s", "--drain_timeout=100ms"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  auto stub = v1::VisionService::NewStub(Connect(server));
  grpc::Status status;
  std::thread caller([&stub, &status] {
    v1::ClassifyResponse response;
    status = Classify(*stub, 1, &response);
  });
  WaitUntil(
      [&server] {
        return SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")),
                     "sfmamba_queue_items", {}) == 1;
      },
      "the image in the queue");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 6) << server.output();
  Join(caller, "the end of the call", kTestPatience);
  EXPECT_FALSE(status.ok());
}

// A batch takes many seconds, because its pictures are large and the server has
// only one compute thread.
TEST(ServerProcessTest, ABatchThatOutlivesTheDrainEndsWithTheProcess) {
  const std::string version = testing::TempDir() + "/slow/painter/1";
  std::filesystem::create_directories(version);
  std::ofstream(version + "/config.textproto")
      << "task: SEGMENTATION segmenter { channels: 128 } "
         "backbone { variant: 'custom' dim: 32 in_dim: 16 } "
         "input { short_side: 512 long_side: 512 } "
         "batching { max_batch_size: 64 }";
  ServerProcess server({"--model_repository=" + testing::TempDir() + "/slow",
                        "--random_init", "--compute_threads=1",
                        "--drain_delay=0s", "--drain_timeout=0.1s"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  v1::SegmentRequest request;
  for (int i = 0; i < 64; ++i) {
    *request.add_images() = GreyRequest(i).images(0);
  }
  std::thread caller([&server, &request] {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(120));
    v1::SegmentResponse response;
    v1::VisionService::NewStub(Connect(server))
        ->Segment(&context, request, &response);
  });
  // Waits until the server has decoded all 64 images and the queue is empty.
  // Then the images are in a batch.
  const auto sum = [&server](const char* name) {
    return SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")), name, {});
  };
  WaitUntil(
      [&sum] {
        return sum("sfmamba_image_pixels_count") == 64 &&
               sum("sfmamba_queue_items") == 0;
      },
      "the images in the batch", kTestPatience);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 6);
  Join(caller, "the end of the call", kTestPatience);
  EXPECT_TRUE(server.WaitForLog("ending without it")) << server.output();
}

TEST(ServerProcessTest, ASecondSignalEndsItAtOnce) {
  const std::string repository = WriteTinyModel();
  for (const int first : {SIGINT, SIGTERM}) {
    const int second = first == SIGINT ? SIGTERM : SIGINT;
    ServerProcess server(
        {"--model_repository=" + repository, "--drain_delay=1h"});
    ASSERT_TRUE(server.WaitUntilServing()) << server.output();
    server.Signal(first);
    ASSERT_TRUE(server.WaitForLog("\"msg\":\"draining\"")) << server.output();
    server.Signal(second);
    EXPECT_EQ(server.Wait(), 128 + second);
  }
}

TEST(ServerProcessTest, BadFlagsAndConfigurationsExitWith2) {
  const std::string path = testing::TempDir() + "/bad.textproto";
  std::ofstream(path) << "port: 1\nprot: 2\n";
  const struct {
    std::vector<std::string> flags;
    const char* says;
  } kCases[] = {
      {{"--model_repositori=x"}, "--model_repositori=x: there is no such flag"},
      {{"--decode_threads=many"}, "--decode_threads: got \"many\""},
      {{"--config=" + path}, "line 2"},
      {{"--config=/nonexistent"}, "/nonexistent"},
      {{"--model_repository=x", "--gpus=0,b"}, "--gpus: got \"0,b\""},
      {{"--model_repository=x", "--tune", "--device=cpu"}, "--fold_table"},
      {{"--model_repository=x", "--port=65536"}, "port: got 65536"},
      {{"--model_repository=x", "--startup_models=a"}, "startup_models: got"},
      {{"serve"}, "serve: expected a flag"},
      {{}, "model_repository"},
  };
  for (const auto& test : kCases) {
    std::string output;
    EXPECT_EQ(ExitCode(test.flags, &output), 2) << test.says;
    EXPECT_NE(output.find(test.says), std::string::npos) << output;
  }
}

TEST(ServerProcessTest, AnUnknownInstructionSetExitsWith2) {
  setenv("SFMAMBA_CPU_ISA", "avx3", 1);
  std::string output;
  EXPECT_EQ(ExitCode({"--model_repository=x"}, &output), 2);
  unsetenv("SFMAMBA_CPU_ISA");
  EXPECT_EQ(output,
            "SFMAMBA_CPU_ISA: got \"avx3\", expected scalar, avx2 or "
            "avx512\n");
}

TEST(ServerProcessTest, TheConfigurationCanBeCheckedAndPrinted) {
  const std::string path = testing::TempDir() + "/good.textproto";
  std::ofstream(path) << "model_repository: 'x' port: 1234 decode_threads: 3";
  std::string output;
  EXPECT_EQ(ExitCode({"--config=" + path, "--validate_config"}, &output), 0);
  EXPECT_EQ(ExitCode({"--config=" + path, "--port=77", "--drain_delay=1500ms",
                      "--print_effective_config"},
                     &output),
            0);
  for (const char* line :
       {"port: 77\n", "decode_threads: 3\n", "host: \"127.0.0.1\"\n",
        "drain_delay {\n  seconds: 1\n  nanos: 500000000\n}"}) {
    EXPECT_NE(output.find(line), std::string::npos) << output;
  }
}

TEST(ServerProcessTest, AModelThatDoesNotLoadExitsWith3) {
  const std::string repository = WriteTinyModel();
  std::ofstream(repository + "/tiny/1/model.safetensors", std::ios::app) << "x";
  std::string output;
  EXPECT_EQ(ExitCode({"--model_repository=" + repository}, &output), 3);
  EXPECT_NE(output.find("model.safetensors: size in bytes"), std::string::npos)
      << output;
  EXPECT_EQ(ExitCode({"--model_repository=/nonexistent"}, &output), 3);
}

TEST(ServerProcessTest, WithoutTheDeviceAskedForItExitsWith5) {
  const std::string repository = "--model_repository=" + WriteTinyModel();
  const std::vector<std::string> kCases[] = {
      {repository, "--device=cuda"},
      {repository, "--gpus=0"},
      {repository, "--tune", "--fold_table=" + testing::TempDir() + "/fold"},
  };
  for (const auto& flags : kCases) {
    std::string output;
    EXPECT_EQ(ExitCode(flags, &output, kFaultyServer), 5) << output;
    EXPECT_NE(output.find("this test has no driver"), std::string::npos)
        << output;
  }
}

TEST(ServerProcessTest, ADeviceThatFailsForGoodEndsItWith7) {
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel(), "--drain_delay=1h"},
      kFaultyServer);
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  auto stub = v1::VisionService::NewStub(Connect(server));
  v1::ClassifyResponse response;
  EXPECT_TRUE(Classify(*stub, 0, &response).ok());
  EXPECT_EQ(Classify(*stub, 255, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.Wait(), 7);
  EXPECT_TRUE(server.WaitForLog("device 0: the launch failed"))
      << server.output();
}

TEST(ServerProcessTest, SaysWhatItWasBuiltFrom) {
  ServerProcess server({"--model_repository=" + WriteTinyModel()});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  const std::string metrics = HttpGet(server.metrics_port(), "/metrics");
  EXPECT_TRUE(std::regex_search(
      metrics, std::regex("sfmamba_build_info.*revision=\"(unknown|[0-9a-f]{40}"
                          "(-dirty)?)\"")))
      << metrics;
}

TEST(ServerProcessTest, APortInUseExitsWith4AndIsNamed) {
  const std::string repository = WriteTinyModel();
  ServerProcess first({"--model_repository=" + repository});
  ASSERT_TRUE(first.WaitUntilServing()) << first.output();
  std::string output;
  EXPECT_EQ(ExitCode({"--model_repository=" + repository,
                      absl::StrCat("--port=", first.port())},
                     &output),
            4);
  EXPECT_NE(output.find(first.address()), std::string::npos) << output;
  EXPECT_EQ(ExitCode({"--model_repository=" + repository,
                      absl::StrCat("--metrics_port=", first.metrics_port())},
                     &output),
            4);
  EXPECT_NE(output.find(absl::StrCat("127.0.0.1:", first.metrics_port())),
            std::string::npos)
      << output;
}

}  // namespace
}  // namespace sfmamba
