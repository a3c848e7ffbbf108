// Clients that send small HTTP/2 frames as fast as they can: calls that are
// reset at once (CVE-2023-44487) and frames that begin no call. Another caller
// is answered meanwhile and afterwards, the memory stays within the budget and
// a tenth, and the server ends when it is told to.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/e2e/attacks/rounds.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/server/http/tls_client.h"
#include "tests/testing/certificates.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kBudget = 1536 * kMiB;
constexpr char kClassify[] = "/sfmamba.v1.VisionService/Classify";
constexpr int kFramesAtOnce = 100;
constexpr char kOwn[] = "127.0.0.1";  // The address of the other caller too.
constexpr char kOther[] = "127.0.0.2";

// The frames of one hostile call.
using Frames = std::function<std::string(uint32_t stream)>;

std::string HeadersAndReset(uint32_t stream) {
  return absl::StrCat(Http2Headers(stream, kClassify), Http2Reset(stream));
}

std::string ShortHeadersAndReset(uint32_t stream) {
  return absl::StrCat(Http2ShortHeaders(stream, kClassify, stream == 1),
                      Http2Reset(stream));
}

std::string EmptyMessageAndReset(uint32_t stream) {
  return absl::StrCat(Http2Headers(stream, kClassify),
                      Http2Message(stream, "", false), Http2Reset(stream));
}

std::string HalfMessageAndReset(uint32_t stream) {
  const std::string message = Http2Message(stream, std::string(90, 'x'), false);
  // The frame's length without the message's second half.
  std::string half = message.substr(0, message.size() - 45);
  half[2] -= 45;
  return absl::StrCat(Http2Headers(stream, kClassify), half,
                      Http2Reset(stream));
}

std::string ResetsAfterGoAway(uint32_t stream) {
  return absl::StrCat(stream == 1 ? Http2GoAway() : "",
                      HeadersAndReset(stream));
}

// One field of headers, of 2^30 bytes by its length (RFC 7541, 5.1), of the
// connection's first call (CVE-2023-33953).
std::string EndlessField(uint32_t stream) {
  const std::string start = std::string("\0\3x-a", 5);
  const std::string length = "\x7F\x81\xFF\xFF\xFF\x03";
  return stream == 1 ? Http2HeadersPart(1, start + length)
                     : Http2Continuation(1, std::string(16'000, 'y'));
}

std::string OnePing(uint32_t /*stream*/) { return Http2Ping(); }

std::string OneSettings(uint32_t /*stream*/) { return Http2Settings(); }

std::string Packet(const Frames& frames, uint32_t* stream) {
  std::string packet;
  for (int i = 0; i < kFramesAtOnce; ++i, *stream += 2) {
    packet += frames(*stream);
  }
  return packet;
}

// Each sends over one connection at a time until `end`, anew whenever the
// server ends it.
void Flood(int port, const std::string& from, const Frames& frames,
           absl::Time end, bool keeps_port = false) {
  int from_port = 0;
  while (base::SteadyNow() < end) {
    RawConnection connection(port, from, from_port);
    if (keeps_port && connection.connected()) {
      from_port = connection.from_port();
    }
    bool open = connection.connected() && connection.Send(Http2Preface());
    for (uint32_t stream = 1; open && base::SteadyNow() < end;) {
      open =
          connection.Send(Packet(frames, &stream), end) && connection.Discard();
    }
  }
}

void FloodThroughTls(int port, const Frames& frames, absl::Time end) {
  http::TlsClient::Options options;
  options.protocols = "\x02h2";
  while (base::SteadyNow() < end) {
    http::TlsClient connection(port, options);
    bool open = connection.Greet() && connection.Send(Http2Preface());
    for (uint32_t stream = 1; open && base::SteadyNow() < end;) {
      open = connection.Send(Packet(frames, &stream));
    }
  }
}

class FrameFloodTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags = {}) {
    flags.push_back("--model_repository=" + WriteTinyModel());
    flags.push_back("--memory_budget_bytes=1536MiB");
    flags.push_back("--drain_delay=0s");
    server_ = std::make_unique<ServerProcess>(flags);
    ASSERT_TRUE(server_->WaitForLog("\"msg\":\"serving\""))
        << server_->output();
  }

  // `flood` runs until the time it is given, on each of `connections` threads.
  void ExpectHarmless(int connections, absl::Duration time,
                      const std::function<void(absl::Time)>& flood,
                      const std::string& authority = "") {
    Victim victim(*server_, absl::Milliseconds(50), authority);
    Attack(connections, flood, base::SteadyNow() + time);
    ExpectAnswered("during", &victim);
    Victim next(*server_, absl::Milliseconds(50), authority);
    absl::SleepFor(absl::Seconds(1));
    ExpectAnswered("afterwards", &next);
    const int64_t peak = server_->peak_resident_bytes();
    std::printf("at most %ld MiB\n", static_cast<long>(peak / kMiB));
    EXPECT_LT(peak, kBudget + kBudget / 10);
    server_->Signal(SIGTERM);
    TimeLimit limit("the server's end");
    EXPECT_EQ(server_->Wait(), 0);
  }

  // Calls flood(end) on `connections` threads.
  static void Attack(int connections,
                     const std::function<void(absl::Time)>& flood,
                     absl::Time end) {
    std::vector<std::thread> attackers;
    for (int i = 0; i < connections; ++i) {
      attackers.emplace_back([&] {
        // Attackers elsewhere would take none of the server's processors.
        setpriority(PRIO_PROCESS, gettid(), 19);
        flood(end);
      });
    }
    for (std::thread& attacker : attackers) Join(attacker, "the attack's end");
  }

  // Floods over plaintext.
  void ExpectHarmless(int connections, const std::string& from,
                      const Frames& frames,
                      absl::Duration time = absl::Seconds(2)) {
    Start();
    ExpectHarmless(connections, time, [&](absl::Time end) {
      Flood(server_->port(), from, frames, end);
    });
  }

  static void ExpectAnswered(const char* when, Victim* victim) {
    const Victim::Count count = victim->Stop();
    std::printf("%s %d of %d answered, ", when, count.answered, count.sent);
    EXPECT_GE(count.answered, 0.95 * count.sent)
        << when << ": of " << count.sent << ": " << count.first_error;
  }

  std::unique_ptr<ServerProcess> server_;
};

// A1, with all that follow.
TEST_F(FrameFloodTest, ResetsFromTheCallersAddress) {
  ExpectHarmless(4, kOwn, HeadersAndReset, absl::Seconds(6));
}

TEST_F(FrameFloodTest, ResetsFromAnotherAddress) {
  ExpectHarmless(4, kOther, HeadersAndReset, absl::Seconds(6));
}

TEST_F(FrameFloodTest, ResetsFiveTimesInARow) {
  Start();
  ExpectFiveRoundsHarmless({}, server_.get(), [&](absl::Time end) {
    Attack(
        4,
        [&](absl::Time time) {
          Flood(server_->port(), kOther, HeadersAndReset, time);
        },
        end);
  });
}

TEST_F(FrameFloodTest, ResetsOverOneConnection) {
  ExpectHarmless(1, kOther, HeadersAndReset);
}

TEST_F(FrameFloodTest, ResetsOverSixtyFourConnections) {
  ExpectHarmless(64, kOther, HeadersAndReset);
}

// The server sees the same peer again, most often on the same descriptor.
TEST_F(FrameFloodTest, ResetsFromTheSamePortsAgain) {
  Start();
  ExpectHarmless(4, absl::Seconds(2), [&](absl::Time end) {
    Flood(server_->port(), kOther, HeadersAndReset, end, /*keeps_port=*/true);
  });
}

TEST_F(FrameFloodTest, ResetsOfThirtyBytes) {
  ExpectHarmless(4, kOther, ShortHeadersAndReset);
}

TEST_F(FrameFloodTest, ResetsAfterAnEmptyMessage) {
  ExpectHarmless(4, kOther, EmptyMessageAndReset);
}

TEST_F(FrameFloodTest, ResetsAfterHalfAMessage) {
  ExpectHarmless(4, kOther, HalfMessageAndReset);
}

TEST_F(FrameFloodTest, ResetsAfterGoAway) {
  ExpectHarmless(4, kOther, ResetsAfterGoAway);
}

TEST_F(FrameFloodTest, ResetsThroughTls) {
  const Certificate pair = MakeCertificate();
  Start({"--tls_cert_file=" + WriteTestFile("cert", pair.pem),
         "--tls_key_file=" + WriteTestFile("key", pair.key)});
  signal(SIGPIPE, SIG_IGN);
  ExpectHarmless(
      4, absl::Seconds(2),
      [&](absl::Time end) {
        FloodThroughTls(server_->port(), HeadersAndReset, end);
      },
      pair.pem);
}

TEST_F(FrameFloodTest, AFieldWithoutEnd) {
  Start();
  ExpectFiveRoundsHarmless({}, server_.get(), [&](absl::Time end) {
    Attack(
        4,
        [&](absl::Time time) {
          Flood(server_->port(), kOther, EndlessField, time);
        },
        end);
  });
}

TEST_F(FrameFloodTest, AFieldWithoutEndThroughTls) {
  const Certificate pair = MakeCertificate();
  Start({"--tls_cert_file=" + WriteTestFile("cert", pair.pem),
         "--tls_key_file=" + WriteTestFile("key", pair.key)});
  signal(SIGPIPE, SIG_IGN);
  ExpectHarmless(
      4, absl::Seconds(4),
      [&](absl::Time end) {
        FloodThroughTls(server_->port(), EndlessField, end);
      },
      pair.pem);
}

TEST_F(FrameFloodTest, Pings) { ExpectHarmless(4, kOther, OnePing); }

TEST_F(FrameFloodTest, Settings) { ExpectHarmless(4, kOther, OneSettings); }

}  // namespace
}  // namespace sfmamba
