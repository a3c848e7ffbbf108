// Calls that only begin: their headers come, and their messages do not.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/steady_clock.h"
#include "gtest/gtest.h"
#include "tests/e2e/attacks/rounds.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr char kClassify[] = "/sfmamba.v1.VisionService/Classify";
constexpr char kStream[] = "/sfmamba.v1.VisionService/StreamPredict";
constexpr int kCallsOfOne = 256;  // max_concurrent_streams.

std::string ManyHeaders(const char* method) {
  std::string frames = Http2Preface();
  for (int i = 0; i < kCallsOfOne; ++i) {
    frames += Http2ShortHeaders(2 * i + 1, method, i == 0);
  }
  return frames;
}

// Opens connections that begin calls, from `addresses` addresses in turn, and
// keeps them until `end`.
void BeginCalls(int port, const char* method, int connections, absl::Time end,
                int addresses = 1) {
  const std::string frames = ManyHeaders(method);
  std::vector<RawConnection> open;
  for (int i = 0; i < connections && base::SteadyNow() < end; ++i) {
    open.emplace_back(port, absl::StrCat("127.0.0.", 2 + i % addresses));
    open.back().SendSome(frames);
  }
  absl::SleepFor(end - base::SteadyNow());
}

class BegunCallsTest : public testing::Test {
 protected:
  BegunCallsTest()
      : server_({"--model_repository=" + WriteTinyModel(),
                 "--memory_budget_bytes=1536MiB", "--drain_delay=0s"}) {}

  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilServing()) << server_.output();
  }

  void ExpectHarmless(const char* method, int connections) {
    Rounds rounds;
    rounds.address = server_.address();
    // 256 calls each, which take 17 KiB each.
    ExpectFiveRoundsHarmless(rounds, &server_, [&](absl::Time end) {
      BeginCalls(server_.port(), method, connections, end);
    });
  }

  ServerProcess server_;
};

// A3, with all that follow.
TEST_F(BegunCallsTest, UnaryCalls) { ExpectHarmless(kClassify, 100); }

TEST_F(BegunCallsTest, Streams) { ExpectHarmless(kStream, 50); }

TEST_F(BegunCallsTest, TheirMemoryIsGivenBack) {
  const int64_t before = server_.resident_bytes();
  BeginCalls(server_.port(), kClassify, 50,
             base::SteadyNow() + absl::Seconds(3), /*addresses=*/25);
  EXPECT_GT(server_.peak_resident_bytes(), before + 120 * kMiB);
  WaitUntil([&] { return server_.resident_bytes() < before + 64 * kMiB; },
            "the return of the memory");
}

// Ends although few calls are no matter of memory.
TEST_F(BegunCallsTest, EndWithinTheirLimit) {
  RawConnection connection(server_.port());
  connection.Send(Http2Preface());
  connection.Send(Http2Headers(1, kClassify));
  const absl::Time begin = base::SteadyNow();
  TimeLimit limit("the end of the call");
  connection.WaitForEnd();
  EXPECT_GT(base::SteadyNow() - begin, absl::Seconds(9));
  EXPECT_LT(base::SteadyNow() - begin, absl::Seconds(15));
}

// Who opens a stream may wait for the first picture.
TEST_F(BegunCallsTest, ASilentStreamIsKept) {
  RawConnection connection(server_.port());
  connection.Send(Http2Preface());
  connection.Send(Http2Headers(1, kStream));
  for (int i = 0; i < 13; ++i) {
    absl::SleepFor(absl::Seconds(1));
    ASSERT_TRUE(connection.Discard()) << "after " << i + 1 << " s";
  }
}

// A message may take as long as it needs while it comes.
TEST_F(BegunCallsTest, ASlowMessageIsRead) {
  RawConnection connection(server_.port());
  connection.Send(Http2Preface());
  connection.Send(Http2Headers(1, kClassify));
  const std::string message = Http2Message(1, std::string(16000, 'x'));
  const int steps = 32;
  for (int i = 0; i < steps; ++i) {
    const size_t size = message.size() / steps;
    EXPECT_TRUE(connection.Discard()) << "after " << i << " steps";
    connection.Send(absl::string_view(message).substr(i * size, size));
    absl::SleepFor(absl::Milliseconds(500));
  }
  EXPECT_TRUE(connection.Discard());
}

}  // namespace
}  // namespace sfmamba
