// Attacks on Envoy with the configuration of deploy/envoy, over gRPC and HTTP.
// Two polite callers, one over each protocol, must lose no request. The
// server's memory must not grow. An attack takes ATTACK_SECONDS, by default 4.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/e2e/envoy_process.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/rest_victim.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/server/http/tls_client.h"
#include "tests/testing/certificates.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kHeap = 1024 * kMiB;  // Envoy's memory limit in envoy.yaml.
constexpr char kClassify[] = "/sfmamba.v1.VisionService/Classify";
constexpr char kStream[] = "/sfmamba.v1.VisionService/StreamPredict";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kAttacker[] = "127.0.0.2";

// Returns the duration of an attack.
absl::Duration Round() {
  const char* const seconds = std::getenv("ATTACK_SECONDS");
  return absl::Seconds(seconds == nullptr ? 4 : std::atoi(seconds));
}

// An attack over one connection. Lasts until `end`, or until Envoy closes the
// connection.
using Attack = std::function<void(int port, absl::Time end)>;

// Returns an attack that sends packets without pause. `packet` returns the next
// packet and sets `*stream` to the next unused stream number.
Attack Flood(std::function<std::string(uint32_t* stream)> packet) {
  return [packet = std::move(packet)](int port, absl::Time end) {
    RawConnection connection(port, kAttacker);
    bool open = connection.connected() && connection.Send(Http2Preface());
    for (uint32_t stream = 1; open && base::SteadyNow() < end;) {
      open = connection.Send(packet(&stream), end) && connection.Discard();
    }
  };
}

// Returns an attack that sends the frames of stream 1, 3, 5 and so on. `frames`
// returns the frames that it sends for a stream number.
Attack FloodOf(std::function<std::string(uint32_t stream)> frames) {
  return Flood([frames = std::move(frames)](uint32_t* stream) {
    std::string packet;
    for (int i = 0; i < 100; ++i, *stream += 2) packet += frames(*stream);
    return packet;
  });
}

// Returns an attack that sends `begin` once and then keeps the connection open.
Attack Hold(std::string begin) {
  return [begin = std::move(begin)](int port, absl::Time end) {
    RawConnection connection(port, kAttacker);
    if (!connection.connected()) return;
    connection.Send(begin, end);
    while (connection.Discard() && base::SteadyNow() < end) {
      absl::SleepFor(absl::Milliseconds(50));
    }
  };
}

Attack HoldHttp2(const std::string& frames, uint32_t window = 65535) {
  return Hold(absl::StrCat(Http2Preface(window), frames));
}

std::string BeginCalls(const char* method, int calls) {
  std::string frames;
  for (int i = 0; i < calls; ++i) {
    frames += Http2ShortHeaders(2 * i + 1, method, i == 0);
  }
  return frames;
}

// Returns an attack that sends `head` and then repeats `part`, as HTTP/1.1,
// with a pause after each.
Attack SendHttp(std::string head, std::string part, absl::Duration pause) {
  return [=](int port, absl::Time end) {
    RawConnection connection(port, kAttacker);
    bool open = connection.connected() && connection.Send(head, end);
    while (open && base::SteadyNow() < end) {
      open = connection.Send(part, end) && connection.Discard();
      absl::SleepFor(pause);
    }
  };
}

void Handshakes(int port, absl::Time end) {
  while (base::SteadyNow() < end) {
    http::TlsClient::Options options;
    options.protocols = "\x02h2";
    http::TlsClient(port, options).Greet();
  }
}

class FrontDoorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EnvoyProcess::IsInstalled()) GTEST_SKIP() << "Envoy is not on PATH";
    signal(SIGPIPE, SIG_IGN);
    server_ = std::make_unique<ServerProcess>(std::vector<std::string>{
        "--model_repository=" + WriteTinyModel(),
        "--trusted_proxies=127.0.0.1/32", "--drain_delay=0s"});
    ASSERT_TRUE(server_->WaitUntilServing()) << server_->output();
    envoy_ = std::make_unique<EnvoyProcess>(*server_, MakeCertificate());
  }

  // Runs `attack` repeatedly on each of `connections` threads. Expects that the
  // polite callers lose no request and that memory does not grow.
  void ExpectHarmless(int connections, const Attack& attack) {
    ExpectHarmless(connections, attack, envoy_->port());
  }
  void ExpectHarmless(int connections, const Attack& attack, int port) {
    const int64_t before = server_->resident_bytes();
    Victim victim(envoy_->address());
    RestVictim rest_victim(envoy_->port());
    const absl::Time end = base::SteadyNow() + Round();
    std::vector<std::thread> attackers;
    for (int i = 0; i < connections; ++i) {
      attackers.emplace_back([&] {
        // This thread gets a low priority, because a remote attacker would not
        // use the server's CPUs.
        setpriority(PRIO_PROCESS, gettid(), 19);
        while (base::SteadyNow() < end) {
          attack(port, end);
          absl::SleepFor(absl::Milliseconds(10));
        }
      });
    }
    for (std::thread& attacker : attackers) {
      Join(attacker, "the attack's end", kTestPatience);
    }
    ExpectAnswered("gRPC", victim.Stop());
    ExpectAnswered("REST", rest_victim.Stop());
    EXPECT_TRUE(envoy_->IsRunning());
    std::printf("server: %ld MiB before, %ld at most; Envoy: %ld at most\n",
                static_cast<long>(before / kMiB),
                static_cast<long>(server_->peak_resident_bytes() / kMiB),
                static_cast<long>(envoy_->peak_resident_bytes() / kMiB));
    EXPECT_LT(envoy_->peak_resident_bytes(), kHeap);
    EXPECT_LT(server_->peak_resident_bytes(), before + 64 * kMiB);
  }

  static void ExpectAnswered(const char* way, const Victim::Count& count) {
    std::printf("%s: %d of %d answered\n", way, count.answered, count.sent);
    EXPECT_GT(count.sent, 0);
    EXPECT_EQ(count.answered, count.sent) << way << ": " << count.first_error;
  }

  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<EnvoyProcess> envoy_;
};

TEST_F(FrontDoorTest, ResetStreams) {
  ExpectHarmless(4, FloodOf([](uint32_t stream) {
                   return absl::StrCat(Http2Headers(stream, kClassify),
                                       Http2Reset(stream));
                 }));
}

TEST_F(FrontDoorTest, ResetStreamsAfterAMessage) {
  ExpectHarmless(4, FloodOf([](uint32_t stream) {
                   return absl::StrCat(Http2Headers(stream, kClassify),
                                       Http2Message(stream, "", false),
                                       Http2Reset(stream));
                 }));
}

TEST_F(FrontDoorTest, Settings) {
  ExpectHarmless(4, FloodOf([](uint32_t) { return Http2Settings(); }));
}

TEST_F(FrontDoorTest, Pings) {
  ExpectHarmless(4, FloodOf([](uint32_t) { return Http2Ping(); }));
}

// Sends a single header, on stream 1. Its declared length is 2^30 bytes (RFC
// 7541, 5.1). CONTINUATION frames on the same stream send its value without
// end.
TEST_F(FrontDoorTest, Continuations) {
  ExpectHarmless(4, FloodOf([](uint32_t stream) {
                   const std::string name = std::string("\0\3x-a", 5);
                   const std::string length = "\x7F\x81\xFF\xFF\xFF\x03";
                   return stream == 1
                              ? Http2HeadersPart(1, name + length)
                              : Http2Continuation(1, std::string(16'000, 'y'));
                 }));
}

// The path has 8034 bytes.
TEST_F(FrontDoorTest, LargeHeaders) {
  ExpectHarmless(4, FloodOf([](uint32_t stream) {
                   return Http2Headers(
                       stream, absl::StrCat(kClassify, std::string(8000, 'x')));
                 }));
}

TEST_F(FrontDoorTest, CallsWithoutAMessage) {
  ExpectHarmless(50, HoldHttp2(BeginCalls(kClassify, 256)));
}

TEST_F(FrontDoorTest, SilentStreams) {
  ExpectHarmless(50, HoldHttp2(BeginCalls(kStream, 256)));
}

TEST_F(FrontDoorTest, Watches) {
  std::string frames;
  for (int i = 0; i < 256; ++i) {
    absl::StrAppend(&frames, Http2ShortHeaders(2 * i + 1, kWatch, i == 0),
                    Http2Message(2 * i + 1, ""));
  }
  ExpectHarmless(20, HoldHttp2(frames));
}

TEST_F(FrontDoorTest, BodiesThatNeverEnd) {
  const std::string message = Http2Message(1, std::string(50 << 20, 'x'));
  const std::string most = message.substr(0, message.size() - 1000);
  ExpectHarmless(8, HoldHttp2(absl::StrCat(Http2Headers(1, kClassify), most)));
}

// The attacker reads no byte of an answer.
TEST_F(FrontDoorTest, AnswersThatNobodyReads) {
  std::string frames;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&frames, Http2ShortHeaders(2 * i + 1, "/nothing", i == 0),
                    Http2Message(2 * i + 1, ""));
  }
  ExpectHarmless(20, HoldHttp2(frames, /*window=*/0));
}

TEST_F(FrontDoorTest, SilentConnections) { ExpectHarmless(500, HoldHttp2("")); }

TEST_F(FrontDoorTest, Handshakes) {
  ExpectHarmless(4, Handshakes, envoy_->tls_port());
}

TEST_F(FrontDoorTest, HttpHeadersWithoutEnd) {
  ExpectHarmless(
      8, SendHttp("GET /v1/models HTTP/1.1\r\nHost: a\r\n",
                  absl::StrCat("A: ", std::string(1018, 'x'), "\r\n"), {}));
}

TEST_F(FrontDoorTest, HttpBodiesThatNeverEnd) {
  ExpectHarmless(
      8, Hold(absl::StrCat("POST /v1/models/tiny:classify HTTP/1.1\r\n"
                           "Host: a\r\nContent-Length: 60000000\r\n\r\n",
                           std::string(50 * kMiB, 'x'))));
}

TEST_F(FrontDoorTest, HttpBodiesThatDrip) {
  ExpectHarmless(
      100, SendHttp("POST /v1/models/tiny:classify HTTP/1.1\r\nHost: a\r\n"
                    "Content-Length: 60000000\r\n\r\n",
                    "x", absl::Milliseconds(50)));
}

TEST_F(FrontDoorTest, HttpRequestsOneAfterAnother) {
  ExpectHarmless(
      4, SendHttp("", "GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", {}));
}

TEST_F(FrontDoorTest, HttpAnswersThatNobodyReads) {
  ExpectHarmless(50, [](int port, absl::Time end) {
    RawConnection connection(port, kAttacker);
    if (!connection.connected()) return;
    for (int i = 0; i < 20; ++i) {
      connection.SendSome("GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    absl::SleepFor(end - base::SteadyNow());
  });
}

}  // namespace
}  // namespace sfmamba
