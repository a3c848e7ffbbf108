// Floods the server with connections and streams. Run these tests by hand:
//
//   bazel run //tests/e2e/attacks:connection_floods
//
// Each test runs its flood four times, and each flood takes half a minute.
// After each flood, the test prints the server's memory and the results of a
// polite caller (class Victim). The third and the fourth flood must reuse the
// memory that the first two left. The tests need 11,000 file descriptors.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "server/host/descriptors.h"
#include "sfmamba/v1/vision.grpc.pb.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"

namespace sfmamba {
namespace {

constexpr absl::Duration kFlood = absl::Seconds(30);
constexpr int64_t kMiB = 1 << 20;
// The server's memory may exceed its budget of 1536 MiB by at most a tenth.
constexpr int64_t kMostMemory = 1536 * kMiB * 11 / 10;
constexpr char kClassify[] = "/sfmamba.v1.VisionService/Classify";

bool IsHealthy(const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto stub = grpc::health::v1::Health::NewStub(grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(5));
  grpc::health::v1::HealthCheckResponse response;
  return stub->Check(&context, {}, &response).ok() &&
         response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

std::string ClassifyMessage() {
  v1::ClassifyRequest request;
  v1::PixelBuffer& pixels = *request.add_images()->mutable_pixels();
  pixels.set_width(64);
  pixels.set_height(64);
  pixels.set_format(v1::PixelBuffer::RGB8);
  pixels.set_data(std::string(3 * 64 * 64, 'x'));
  return request.SerializeAsString();
}

class ConnectionFloods : public testing::Test {
 protected:
  using Connections = std::vector<RawConnection>;

  void SetUp() override {
    server::RaiseDescriptorLimit();
    ASSERT_GE(server::DescriptorLimit(), 11'000);
    ASSERT_TRUE(server_.WaitUntilServing()) << server_.output();
  }

  // Opens connections, each of which sends the HTTP/2 preface.
  Connections Connect(int count, uint32_t window = 65535) {
    Connections connections;
    for (int i = 0; i < count; ++i) {
      connections.emplace_back(server_.port());
      connections.back().SendSome(Http2Preface(window));
    }
    return connections;
  }

  // Floods the server four times. The last flood must not leave much more
  // memory in use than the second.
  void Flood(const std::function<Connections()>& begin,
             const std::function<void(Connections&)>& step) {
    FloodOnce(begin, step);
    const int64_t second = FloodOnce(begin, step);
    FloodOnce(begin, step);
    EXPECT_LT(FloodOnce(begin, step), second + 50 * kMiB);
  }

  // Opens connections with `begin` and calls `step` on them repeatedly for the
  // time kFlood. Returns the server's memory at the end, in bytes.
  int64_t FloodOnce(const std::function<Connections()>& begin,
                    const std::function<void(Connections&)>& step) {
    const int64_t before = server_.resident_bytes();
    Victim victim(server_);
    Connections connections = begin();
    const absl::Time start = absl::Now();
    int64_t steps = 0;
    for (; absl::Now() - start < kFlood; ++steps) step(connections);
    const int64_t end = server_.resident_bytes();
    const bool healthy = IsHealthy(server_);
    const Victim::Count count = victim.Stop();
    std::printf(
        "%s: %ld steps; resident MiB: %ld before, %ld at the end, %ld at "
        "most; the victim: %d of %d answered %s; healthy: %d\n",
        testing::UnitTest::GetInstance()->current_test_info()->name(), steps,
        before / kMiB, end / kMiB, server_.peak_resident_bytes() / kMiB,
        count.answered, count.sent, count.first_error.c_str(), healthy);
    EXPECT_TRUE(healthy);
    EXPECT_GE(count.answered, 0.95 * count.sent);
    EXPECT_LT(server_.peak_resident_bytes(), kMostMemory);
    return end;
  }

  ServerProcess server_{{"--model_repository=" + WriteTinyModel(),
                         "--memory_budget_bytes=1536MiB"}};
};

TEST_F(ConnectionFloods, TenThousandIdleConnections) {
  Flood([this] { return Connect(10'000); },
        [](Connections&) { absl::SleepFor(absl::Milliseconds(100)); });
}

TEST_F(ConnectionFloods, ThreeHundredDrippingStreams) {
  const std::string message = Http2Message(1, ClassifyMessage());
  size_t at = 0;
  Flood(
      [this] {
        Connections connections = Connect(300);
        for (RawConnection& c : connections) {
          c.SendSome(Http2Headers(1, kClassify));
        }
        return connections;
      },
      [&](Connections& connections) {
        const size_t size = std::min<size_t>(10, message.size() - at);
        for (RawConnection& c : connections) {
          c.SendSome(absl::string_view(message).substr(at, size));
        }
        at += size;
        absl::SleepFor(absl::Milliseconds(50));
      });
}

// Each connection sends requests repeatedly. Its flow-control window is zero,
// so the server cannot send the bytes of an answer.
TEST_F(ConnectionFloods, ReadersWithAWindowOfZero) {
  const std::string message = ClassifyMessage();
  uint32_t stream = 1;
  Flood([this] { return Connect(100, /*window=*/0); },
        [&](Connections& connections) {
          for (RawConnection& c : connections) {
            c.SendSome(absl::StrCat(Http2Headers(stream, kClassify),
                                    Http2Message(stream, message)));
            c.Discard();
          }
          stream += 2;
          absl::SleepFor(absl::Milliseconds(100));
        });
}

TEST_F(ConnectionFloods, Pings) {
  std::string pings;
  for (int i = 0; i < 100; ++i) pings += Http2Ping();
  Flood([this] { return Connect(10); },
        [&](Connections& connections) {
          for (size_t i = 0; i < connections.size(); ++i) {
            connections[i].SendSome(pings);
            if (!connections[i].Discard()) {
              connections = Connect(10);
              break;
            }
          }
        });
}

TEST_F(ConnectionFloods, ConnectionsThatComeAndGo) {
  Flood([] { return Connections(); },
        [this](Connections& connections) { connections = Connect(100); });
}

}  // namespace
}  // namespace sfmamba
