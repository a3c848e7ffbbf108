// Tests a real server whose CPU runs several batches at once.

#include <sched.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/server_process.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

int AllowedProcessors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

v1::ClassifyRequest GreyRequest(int grey) {
  v1::ClassifyRequest request;
  request.mutable_options()->set_include_timing(true);
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(80);
  pixels.set_height(72);
  pixels.set_format(v1::PixelBuffer::GRAY8);
  pixels.set_data(std::string(80 * 72, static_cast<char>(grey)));
  return request;
}

class Caller {
 public:
  explicit Caller(const ServerProcess& server)
      : stub_(v1::VisionService::NewStub(grpc::CreateChannel(
            server.address(), grpc::InsecureChannelCredentials()))) {}

  grpc::Status Classify(int grey, v1::ClassifyResponse* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    return stub_->Classify(&context, GreyRequest(grey), response);
  }
  // Returns the scores of a grey picture as bytes, or "" if the call fails. All
  // pixels have the value `grey`.
  std::string Scores(int grey) {
    v1::ClassifyResponse response;
    if (!Classify(grey, &response).ok()) return "";
    return response.results(0).SerializeAsString();
  }

 private:
  const std::unique_ptr<v1::VisionService::Stub> stub_;
};

// Returns the scores that a server with one context computes. The index is the
// pictures' grey value.
std::vector<std::string> ExpectedScores(const std::string& repository) {
  ServerProcess server(
      {"--model_repository=" + repository, "--cpu_contexts=1"});
  EXPECT_TRUE(server.WaitUntilServing()) << server.output();
  Caller caller(server);
  std::vector<std::string> expected;
  for (int grey = 0; grey < 8; ++grey) {
    expected.push_back(caller.Scores(grey));
    EXPECT_FALSE(expected.back().empty());
  }
  return expected;
}

TEST(CpuContextsTest, TwoContextsAnswerAsOneDoes) {
  if (AllowedProcessors() < 2) GTEST_SKIP() << "needs two processors";
  const std::string repository = WriteTinyModel();
  const std::vector<std::string> expected = ExpectedScores(repository);
  ServerProcess server({"--model_repository=" + repository, "--cpu_contexts=2",
                        "--compute_threads=2"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      Caller caller(server);
      for (int call = 0; call < 40; ++call) {
        const int grey = (i + call) % 8;
        if (caller.Scores(grey) == expected[grey]) ++right;
      }
    });
  }
  for (std::thread& thread : threads) Join(thread, "a caller", kTestPatience);
  EXPECT_EQ(right.load(), 8 * 40);
  v1::ClassifyResponse response;
  ASSERT_TRUE(Caller(server).Classify(1, &response).ok());
  EXPECT_TRUE(absl::EndsWith(response.timing().device(), ", 2 contexts)"))
      << response.timing().device();
  const auto samples = Samples(HttpGet(server.metrics_port(), "/metrics"));
  for (const char* device : {"cpu:0", "cpu:1"}) {
    EXPECT_GT(SumOf(samples, "sfmamba_device_busy_ratio",
                    {absl::StrCat("device=\"", device, "\"")}),
              0)
        << device;
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.output();
}

TEST(CpuContextsTest, WhatTheMachineCannotGiveIsRefusedByName) {
  const std::string repository = "--model_repository=" + WriteTinyModel();
  for (const char* contexts : {"-1", "1025", "1000", "x"}) {
    ServerProcess server({repository, absl::StrCat("--cpu_contexts=", contexts),
                          "--compute_threads=1024"});
    EXPECT_EQ(server.Wait(), 2) << contexts;
    EXPECT_TRUE(server.WaitForLog("cpu_contexts")) << server.output();
  }
  ServerProcess server({repository, "--cpu_contexts=2", "--compute_threads=1"});
  EXPECT_EQ(server.Wait(), 2);
  EXPECT_TRUE(server.WaitForLog("cpu_contexts: got 2, expected 1 to 1"))
      << server.output();
}

}  // namespace
}  // namespace sfmamba
