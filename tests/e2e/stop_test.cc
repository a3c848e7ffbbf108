// Tests that the server ends on a signal in any state, and that it keeps
// running if its log is not read.

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr char kFaultyServer[] = "tests/e2e/faulty_server";

std::string Program(const std::string& name, const std::string& script) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path) << "#!/bin/bash\n" << script;
  chmod(path.c_str(), 0755);
  return path;
}

v1::ClassifyRequest GreyRequest() {
  v1::ClassifyRequest request;
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(64);
  pixels.set_height(64);
  pixels.set_format(v1::PixelBuffer::GRAY8);
  pixels.set_data(std::string(64 * 64, 'x'));
  return request;
}

// The reader of the server's standard error stops reading once the server
// listens. The reader ends with the server.
TEST(StopTest, AnUnreadLogStopsNobody) {
  const std::string program = Program("unread.sh", R"(
exec 2> >(python3 -c 'import fcntl; fcntl.fcntl(0, 1031, 4096)'
          sed -u '/"listening"/q'
          exec >&- 2>&-
          exec tail --pid=$$ -f /dev/null)
exec server/sfmamba_server "$@"
)");
  ServerProcess server({"--model_repository=" + WriteTinyModel(),
                        "--drain_delay=0s", "--drain_timeout=1s"},
                       program);
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  auto stub = v1::VisionService::NewStub(grpc::CreateChannel(
      server.address(), grpc::InsecureChannelCredentials()));
  // The server's log becomes longer than the pipe's buffer.
  for (int i = 0; i < 200; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
    v1::ClassifyResponse response;
    const grpc::Status status =
        stub->Classify(&context, GreyRequest(), &response);
    ASSERT_TRUE(status.ok()) << i << ": " << status.error_message();
  }
  EXPECT_NE(HttpGet(server.metrics_port(), "/metrics"), "");
  stub = nullptr;  // An idle client would delay the server's end.
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

// A terminal that closes sends SIGHUP more than once. systemd can send SIGHUP
// together with SIGTERM.
TEST(StopTest, SighupDrains) {
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel(), "--drain_delay=1s"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.WaitForLog("\"msg\":\"draining\"")) << server.output();
  server.Signal(SIGHUP);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.output();
}

TEST(StopTest, NohupKeepsItRunning) {
  const std::string nohup =
      Program("nohup.sh", "trap '' HUP; exec server/sfmamba_server \"$@\"\n");
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel(), "--drain_delay=0s"}, nohup);
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  server.Signal(SIGHUP);
  auto stub = v1::VisionService::NewStub(grpc::CreateChannel(
      server.address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::ClassifyResponse response;
  EXPECT_TRUE(stub->Classify(&context, GreyRequest(), &response).ok());
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.output();
}

// Opening the pipe for writing succeeds only when the server has opened it for
// reading.
TEST(StopTest, SigtermEndsAServerWhoseConfigurationDoesNotCome) {
  const std::string program = Program("unwritten.sh", R"(
pipe=$TEST_TMPDIR/config.pipe
mkfifo "$pipe"
server/sfmamba_server --config="$pipe" & server=$!
exec 3> "$pipe"
kill -TERM $server
(sleep 20; kill -KILL $server) > /dev/null 2>&1 & late=$!
wait $server; status=$?
kill $late
exit $status
)");
  ServerProcess server({}, program);
  EXPECT_EQ(server.Wait(), 128 + SIGTERM) << server.output();
}

// The model allows large batches whose times are unknown, so measuring them
// takes minutes.
TEST(StopTest, SigtermEndsTheMeasuringOfAModel) {
  ServerProcess server(
      {"--model_repository=" + WriteTinyModel("max_batch_size: 4096"),
       "--profile_budget=1h", "--log_level=debug", "--drain_delay=0s",
       "--drain_timeout=1h"},
      "server/sfmamba_server", "the times of batches are measured");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.output();
  EXPECT_EQ(server.output().find("\"serving\""), std::string::npos);
}

// In this server, a model with nine classes never finishes loading.
TEST(StopTest, SigtermEndsALoadThatCannotBeInterrupted) {
  const std::string repository = testing::TempDir() + "/stuck";
  std::filesystem::create_directories(repository + "/stuck/1");
  std::ofstream(repository + "/stuck/1/config.textproto")
      << "backbone { variant: 'custom' } num_classes: 9 input { size: 64 }";
  ServerProcess server({"--model_repository=" + repository, "--random_init",
                        "--drain_delay=0s", "--drain_timeout=0.1s"},
                       kFaultyServer, "this load never ends");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 6) << server.output();
}

// A client sends a call and reads nothing, so the server cannot deliver its
// answer.
TEST(StopTest, AStuckPeerDoesNotKeepItFromEnding) {
  ServerProcess server({"--model_repository=" + WriteTinyModel(),
                        "--drain_delay=0s", "--drain_timeout=0.5s"});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  RawConnection peer(server.port());
  ASSERT_TRUE(peer.Send(
      absl::StrCat(Http2Preface(/*window=*/0),
                   Http2Headers(1, "/sfmamba.v1.VisionService/Classify"),
                   Http2Message(1, GreyRequest().SerializeAsString()))));
  WaitUntil(
      [&server] {
        return SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")),
                     "sfmamba_requests_total", {R"(code="OK")"}) == 1;
      },
      "the answer");
  server.Signal(SIGTERM);
  const int code = server.Wait();
  EXPECT_TRUE(code == 0 || code == 6) << code << server.output();
}

}  // namespace
}  // namespace sfmamba
