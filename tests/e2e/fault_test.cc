// Tests that a server keeps serving through faults: clients that send a byte a
// second, ten thousand idle connections, a wall clock that jumps, and a device
// without memory. server_process_test covers devices that fail permanently.
// Other tests cover faults of model changes.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/rpc/rpc_status.h"
#include "client/rpc/vision_client.h"
#include "gtest/gtest.h"
#include "server/host/descriptors.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Returns a request with images of 64 x 64 pixels, each of one value.
v1::ClassifyRequest Request(const std::vector<int>& values) {
  v1::ClassifyRequest request;
  for (const int value : values) {
    v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
    pixels.set_width(64);
    pixels.set_height(64);
    pixels.set_format(v1::PixelBuffer::GRAY8);
    pixels.set_data(std::string(64 * 64, static_cast<char>(value)));
  }
  return request;
}

void ExpectAnswered(Victim& victim) {
  const Victim::Count count = victim.Stop();
  EXPECT_GT(count.sent, 0);
  EXPECT_GE(count.answered, 0.95 * count.sent)
      << "of " << count.sent << ": " << count.first_error;
}

TEST(FaultTest, ClientsOfAByteASecondKeepNobodyWaiting) {
  ServerProcess server({"--model_repository=" + WriteTinyModel()});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  const int64_t before = server.resident_bytes();
  Victim victim(server);
  // Each client starts a call and sends its message one byte at a time.
  const std::string call = absl::StrCat(
      Http2Preface(), Http2Headers(1, "/sfmamba.v1.VisionService/Classify"));
  const std::string message = Http2Message(1, Request({1}).SerializeAsString());
  const std::string head =
      "POST /v1/models/tiny:classify HTTP/1.1\r\nHost: a\r\n";
  std::vector<RawConnection> by_grpc, by_http;
  for (int i = 0; i < 300; ++i) {
    by_grpc.emplace_back(server.port());
    by_grpc.back().SendSome(call);
    by_http.emplace_back(server.http_port());
  }
  for (size_t second = 0; second < 6; ++second) {
    for (RawConnection& each : by_grpc) {
      each.SendSome(message.substr(second, 1));
    }
    for (RawConnection& each : by_http) each.SendSome(head.substr(second, 1));
    absl::SleepFor(absl::Seconds(1));
  }
  EXPECT_NE(HttpGet(server.metrics_port(), "/metrics"), "");
  EXPECT_LT(server.peak_resident_bytes(), before + 200 * kMiB);
  ExpectAnswered(victim);
}

TEST(FaultTest, TenThousandIdleConnectionsKeepNobodyWaiting) {
  constexpr int kConnections = 10'000;
  server::RaiseDescriptorLimit();
  if (server::DescriptorLimit() < kConnections + 1000) {
    GTEST_SKIP() << "only " << server::DescriptorLimit() << " descriptors";
  }
  ServerProcess server({"--model_repository=" + WriteTinyModel()});
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  const int64_t before = server.resident_bytes();
  Victim victim(server);
  std::vector<RawConnection> idle;
  for (int i = 0; i < kConnections; ++i) {
    idle.emplace_back(server.port());
    idle.back().SendSome(Http2Preface());
  }
  // The server also accepts a new connection.
  EXPECT_TRUE(server.WaitUntilServing());
  EXPECT_LT(server.resident_bytes(), before + 1024 * kMiB);
  ExpectAnswered(victim);
  idle.clear();
  EXPECT_TRUE(server.WaitUntilServing());
}

// A server whose wall clock is set by Jump().
class ClockJumpTest : public testing::Test {
 protected:
  ClockJumpTest() {
    std::ofstream(path_) << std::string(sizeof(int64_t), '\0');
    const int fd = open(path_.c_str(), O_RDWR);
    offset_ = static_cast<std::atomic<int64_t>*>(mmap(
        nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
  }
  ~ClockJumpTest() override { munmap(offset_, sizeof(int64_t)); }

  void Jump(absl::Duration by) {
    offset_->fetch_add(by / absl::Nanoseconds(1));
  }

  // Writes a script that starts the server with the library clock_jump, which
  // shifts the server's wall clock.
  std::string Program() {
    const std::string program = testing::TempDir() + "/jumping_server.sh";
    const std::string here = std::filesystem::current_path();
    std::ofstream(program) << "#!/bin/bash\nexport CLOCK_JUMP='" << path_
                           << "' LD_PRELOAD='" << here
                           << "/tests/e2e/libclock_jump.so'\n"
                              "exec server/sfmamba_server \"$@\"\n";
    chmod(program.c_str(), 0755);
    return program;
  }

  const std::string path_ = testing::TempDir() + "/clock_jump";
  std::atomic<int64_t>* offset_;
};

// The clock jumps while an image waits for its batch and its call has a
// deadline. If the server measured these times with the wall clock, they would
// end at once or hours later.
TEST_F(ClockJumpTest, IsSeenByNoCall) {
  ServerProcess server(
      {"--model_repository=" +
           WriteTinyModel("mode: THROUGHPUT max_batch_size: 64 "
                          "max_queue_delay { nanos: 500000000 }"),
       "--profile_budget=0s"},
      Program());
  ASSERT_TRUE(server.WaitUntilServing()) << server.output();
  client::VisionClient client(server.address());
  absl::Duration offset;
  for (const absl::Duration jump :
       {-absl::Hours(3), absl::Hours(30), -absl::Hours(20)}) {
    // Abseil reads the system's clock on every call for the first half second,
    // and then only every two seconds. In between, it computes the time itself.
    // The clock jumps during such an interval.
    for (int i = 0; i < 3; ++i) {
      const auto before = client.Classify(Request({0}), absl::Seconds(20));
      EXPECT_TRUE(before.ok()) << before.status();
    }
    std::thread call([&] {
      const auto response = client.Classify(Request({1}), absl::Seconds(20));
      EXPECT_TRUE(response.ok()) << jump << ": " << response.status();
    });
    const TimeLimit limit("the answer to a call", kTestPatience);
    WaitUntil(
        [&] {
          return SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")),
                       "sfmamba_queue_items", {}) == 1;
        },
        "the image to wait");
    Jump(jump);
    offset += jump;
    call.join();
    // Waits until the log contains a line with the new day, which shows that
    // the server's clock has jumped.
    const std::string day = absl::FormatTime(
        "\"ts\":\"%Y-%m-%d", absl::Now() + offset, absl::UTCTimeZone());
    WaitUntil(
        [&] {
          const auto next = client.Classify(Request({2}), absl::Seconds(20));
          EXPECT_TRUE(next.ok()) << next.status();
          return absl::StrContains(server.output(), day);
        },
        "the log to be of " + day);
    EXPECT_TRUE(server.WaitUntilServing()) << jump;
  }
  // The gauge reaches 0 only if periodic work still updates it. A request
  // counts as in flight until gRPC has released its call.
  WaitUntil(
      [&] {
        return SumOf(Samples(HttpGet(server.metrics_port(), "/metrics")),
                     "sfmamba_in_flight_requests", {}) == 0;
      },
      "the end of the calls");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.output();
}

class MemoryFaultTest : public testing::Test {
 protected:
  // The device's memory suffices for two images with the value 254, and for no
  // image with the value 253.
  ServerProcess server_{
      {"--model_repository=" + WriteTinyModel("max_batch_size: 16")},
      "tests/e2e/faulty_server"};
};

TEST_F(MemoryFaultTest, BatchesThatDoNotFitAreSplit) {
  ASSERT_TRUE(server_.WaitUntilServing()) << server_.output();
  client::VisionClient client(server_.address());
  for (int i = 0; i < 3; ++i) {
    const auto response =
        client.Classify(Request({254, 254, 254, 254, 254, 254, 254, 254, 254}),
                        absl::Seconds(20));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->results_size(), 9);
  }
  EXPECT_EQ(SumOf(Samples(HttpGet(server_.metrics_port(), "/metrics")),
                  "sfmamba_item_errors_total", {}),
            0);
}

TEST_F(MemoryFaultTest, AnImageThatDoesNotFitAloneFailsAlone) {
  ASSERT_TRUE(server_.WaitUntilServing()) << server_.output();
  client::VisionClient client(server_.address());
  const auto alone = client.Classify(Request({253}), absl::Seconds(20));
  EXPECT_EQ(alone.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(client::GetRpcErrorDetails(alone.status()).reason, "DEVICE_OOM");
  v1::ClassifyRequest beside = Request({1, 253, 2});
  beside.mutable_options()->set_allow_partial_results(true);
  const auto response = client.Classify(beside, absl::Seconds(20));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->results(0).error().code(), 0);
  EXPECT_EQ(response->results(1).error().code(),
            int(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(response->results(2).error().code(), 0);
  EXPECT_TRUE(server_.WaitUntilServing());
}

}  // namespace
}  // namespace sfmamba
