// Attacks on the HTTP port. The server must still answer /metrics, and its
// memory must not grow with what an attacker sends.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;

class HttpAttackTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.WaitUntilServing()) << server_.output();
    before_ = server_.resident_bytes();
    victim_ = std::make_unique<Victim>(server_);
  }

  // Expects that scrapes and calls are still answered after the attack, and
  // that the server's memory has not grown.
  void TearDown() override {
    EXPECT_NE(HttpGet(server_.metrics_port(), "/metrics"), "");
    const Victim::Count count = victim_->Stop();
    EXPECT_GE(count.answered, 0.95 * count.sent)
        << "of " << count.sent << ": " << count.first_error;
    EXPECT_LT(server_.peak_resident_bytes(), before_ + 100 * kMiB);
  }

  // Sends `begin` and then up to `mebibytes` MiB. Returns how many MiB the
  // server accepted.
  int SendMuch(const std::string& begin, int mebibytes) {
    RawConnection connection(server_.metrics_port());
    connection.Send(begin);
    const std::string line =
        absl::StrCat("A: ", std::string(1018, 'x'), "\r\n");
    std::string mebibyte;
    for (int i = 0; i < 1024; ++i) absl::StrAppend(&mebibyte, line);
    int sent = 0;
    while (sent < mebibytes && connection.Send(mebibyte)) ++sent;
    return sent;
  }

  ServerProcess server_{{"--model_repository=" + WriteTinyModel()}};
  int64_t before_ = 0;
  std::unique_ptr<Victim> victim_;
};

TEST_F(HttpAttackTest, ALargeBodyIsNotRead) {
  for (const char* header :
       {"Content-Length: 629145600", "Transfer-Encoding: chunked",
        "Content-Length: 629145600\r\nContent-Encoding: gzip"}) {
    EXPECT_LT(
        SendMuch(absl::StrCat("POST /metrics HTTP/1.1\r\n", header, "\r\n\r\n"),
                 600),
        600)
        << header;
  }
}

TEST_F(HttpAttackTest, HeadersWithoutEndAreNotRead) {
  EXPECT_LT(SendMuch("GET /metrics HTTP/1.1\r\n", 300), 300);
}

TEST_F(HttpAttackTest, RangesAreNotServed) {
  const size_t whole = HttpGet(server_.metrics_port(), "/metrics").size();
  std::string ranges = "Range: bytes=0-";
  for (int i = 0; i < 1500; ++i) ranges += ",0-";
  RawConnection connection(server_.metrics_port());
  connection.Send(
      absl::StrCat("GET /metrics HTTP/1.0\r\n", ranges, "\r\n\r\n"));
  TimeLimit limit("the answer");
  size_t size = 0;
  while (size < 10 * whole && connection.WaitForByte()) ++size;
  EXPECT_LT(size, 2 * whole);
}

TEST_F(HttpAttackTest, DrippingConnectionsBlockNoScrape) {
  std::vector<std::unique_ptr<RawConnection>> dripping;
  for (int i = 0; i < 300; ++i) {
    dripping.push_back(std::make_unique<RawConnection>(server_.metrics_port()));
    dripping.back()->SendSome("GET /metrics HTTP/1.1\r\n");
  }
  for (int i = 0; i < 10; ++i) {
    for (const auto& connection : dripping) connection->SendSome("A");
    EXPECT_NE(HttpGet(server_.metrics_port(), "/metrics"), "");
  }
}

TEST_F(HttpAttackTest, AnswersThatNobodyReadsBlockNoScrape) {
  std::vector<std::unique_ptr<RawConnection>> unread;
  for (int i = 0; i < 64; ++i) {
    unread.push_back(std::make_unique<RawConnection>(server_.metrics_port()));
    unread.back()->SendSome("GET /metrics HTTP/1.1\r\n\r\n");
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(HttpGet(server_.metrics_port(), "/metrics"), "");
  }
}

}  // namespace
}  // namespace sfmamba
