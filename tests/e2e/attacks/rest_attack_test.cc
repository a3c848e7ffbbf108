// Attacks on the REST port. The server must answer callers over gRPC and stay
// within its memory budget.

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "httplib.h"
#include "server/http/gzip.h"
#include "tests/e2e/raw_http2.h"
#include "tests/e2e/server_process.h"
#include "tests/e2e/victim.h"
#include "tests/testing/http.h"
#include "tests/testing/patience.h"

namespace sfmamba {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kBudget = 1024 * kMiB;
constexpr char kClassify[] = "/v1/models/tiny:classify";

class RestAttackTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE,
                // The server may close a connection while this process sends.
                SIG_IGN);
    ASSERT_TRUE(server_.WaitUntilServing()) << server_.output();
    victim_ = std::make_unique<Victim>(server_);
  }

  // Expects that the polite caller was answered throughout the attack, that the
  // server stayed within its budget, and that it has released all memory of the
  // attack.
  void TearDown() override {
    const Victim::Count count = victim_->Stop();
    std::printf("victim: %d of %d; RSS at most %ld MiB\n", count.answered,
                count.sent,
                static_cast<long>(server_.peak_resident_bytes() / kMiB));
    EXPECT_GT(count.sent, 0);
    EXPECT_GE(count.answered, 0.95 * count.sent) << count.first_error;
    EXPECT_LE(server_.peak_resident_bytes(), kBudget / 10 * 11);
    for (const char* name :
         {"sfmamba_memory_held_bytes", "sfmamba_in_flight_requests"}) {
      WaitUntil(
          [&] {
            return SumOf(Samples(HttpGet(server_.metrics_port(), "/metrics")),
                         name, {}) == 0;
          },
          name);
    }
  }

  // Posts `body`. Returns the status and the first 400 characters of the
  // answer, or the client's error.
  std::string Post(const std::string& body, const std::string& type) {
    httplib::Client client("127.0.0.1", server_.http_port());
    client.set_read_timeout(absl::ToInt64Seconds(kTestPatience), 0);
    client.set_write_timeout(absl::ToInt64Seconds(kTestPatience), 0);
    const httplib::Result answer = client.Post(kClassify, body, type.c_str());
    if (!answer) return httplib::to_string(answer.error());
    return absl::StrCat(answer->status, " ", answer->body.substr(0, 400));
  }

  // Posts one body from many clients at once and returns their answers.
  std::vector<std::string> PostAtOnce(int clients, const std::string& body,
                                      const std::string& type) {
    std::vector<std::string> answers(clients);
    std::vector<std::thread> threads;
    for (std::string& answer : answers) {
      threads.emplace_back([&] { answer = Post(body, type); });
    }
    for (std::thread& thread : threads) Join(thread, "the answer to a body");
    return answers;
  }

  // Returns the head of a request whose body has `bytes` bytes.
  static std::string Head(int64_t bytes) {
    return absl::StrCat("POST ", kClassify, " HTTP/1.1\r\nHost: a\r\n",
                        "Content-Type: application/json\r\nContent-Length: ",
                        bytes, "\r\n\r\n");
  }

  const TimeLimit limit_{"the end of the test", kTestPatience};
  ServerProcess server_{{"--model_repository=" + WriteTinyModel(),
                         absl::StrCat("--memory_budget_bytes=", kBudget)}};
  std::unique_ptr<Victim> victim_;
};

TEST_F(RestAttackTest, LargeBodiesAtOnceAreBounded) {
  for (const char* type : {"image/jpeg", "application/json"}) {
    const auto answers = PostAtOnce(12, std::string(60 * kMiB, 'A'), type);
    for (const std::string& answer : answers) {
      EXPECT_TRUE(absl::StartsWith(answer, "400 ") ||
                  absl::StartsWith(answer, "429 ") ||
                  absl::StartsWith(answer, "503 ") ||
                  // The client's sending fails if the server refuses a body
                  // before all of it has arrived.
                  answer == "Write")
          << answer;
    }
  }
}

TEST_F(RestAttackTest, PicturesInJsonAreBounded) {
  const std::string json = absl::StrCat("{\"images\":[{\"encoded\":\"",
                                        std::string(60 * kMiB, 'A'), "\"}]}");
  for (const std::string& answer : PostAtOnce(12, json, "application/json")) {
    EXPECT_FALSE(absl::StartsWith(answer, "200 ")) << answer;
  }
}

TEST_F(RestAttackTest, JsonBombsAreRefused) {
  std::string objects = "{\"images\":[{}";
  while (objects.size() < 60 * kMiB) objects += ",{}";
  std::string nested;
  while (nested.size() < 60 * kMiB) nested += "{\"params\":";
  std::string quotes = "{\"model\":\"";
  while (quotes.size() < 60 * kMiB) quotes += "\\\"";
  for (const std::string& bomb :
       {std::string(60 * kMiB, '['), objects, nested, quotes,
        std::string(60 * kMiB, '9'),
        "{\"model\":" + std::string(60 * kMiB, '\n')}) {
    // The test sends one body at a time. A single body fits into the memory
    // that one client may use for HTTP bodies. The server therefore reads the
    // whole body and finds the error in the JSON text.
    const std::string answer = Post(bomb, "application/json");
    EXPECT_TRUE(absl::StartsWith(answer, "400 ")) << answer;
    EXPECT_TRUE(absl::StrContains(answer, "JSON: ")) << answer;
  }
}

TEST_F(RestAttackTest, FormsOfManyPartsAreRefused) {
  const std::string type = "multipart/form-data; boundary=b";
  const std::string head =
      "--b\r\nContent-Disposition: form-data; name=a; filename=a\r\n\r\n";
  std::string parts, almost = head, heads;
  while (parts.size() < 60 * kMiB) parts += head + "\r\n";
  while (almost.size() < 60 * kMiB) almost += "\r\n--\r\n-";
  while (heads.size() < 60 * kMiB) heads += "--b\r\nA: b\r\n";
  for (const std::string& form : {parts, almost, heads}) {
    for (const std::string& answer : PostAtOnce(3, form, type)) {
      EXPECT_FALSE(absl::StartsWith(answer, "200 ")) << answer;
    }
  }
}

TEST_F(RestAttackTest, PackedBombsAreRefusedAtTheLimit) {
  // `bomb` decompresses to 900 MiB, from about 900 KiB. `fits` decompresses to
  // 60 MiB, just less than the maximum of 64 MiB.
  std::string bomb;
  const std::string part = http::Gzip(std::string(60 * kMiB, ' '));
  for (int i = 0; i < 15; ++i) bomb += part;
  const std::string fits = http::Gzip(std::string(60 * kMiB, '['));
  std::vector<std::thread> senders;
  for (int i = 0; i < 32; ++i) {
    senders.emplace_back([&, i] {
      httplib::Client client("127.0.0.1", server_.http_port());
      client.set_read_timeout(absl::ToInt64Seconds(kTestPatience), 0);
      const httplib::Result answer =
          client.Post(kClassify, {{"Content-Encoding", "gzip"}},
                      i % 2 == 0 ? bomb : fits, "application/json");
      ASSERT_TRUE(answer) << httplib::to_string(answer.error());
      EXPECT_TRUE(answer->status == 503 ||
                  answer->status == (i % 2 == 0 ? 413 : 400) ||
                  answer->status == 429)
          << answer->status;
    });
  }
  for (std::thread& sender : senders) Join(sender, "the answer to a bomb");
}

TEST_F(RestAttackTest, BodiesThatDoNotComeHoldNothingUp) {
  std::vector<std::unique_ptr<RawConnection>> slow;
  for (int i = 0; i < 500; ++i) {
    slow.push_back(std::make_unique<RawConnection>(server_.http_port()));
    slow.back()->Send(Head(60 * kMiB));
    slow.back()->SendSome("{");
  }
  // The server may refuse a small request while the slow connections are open.
  // When it has closed them, it must read and answer the request.
  WaitUntil(
      [this] {
        return absl::StartsWith(Post("{}", "application/json"), "400 ");
      },
      "the answer to a small body");
  for (const auto& connection : slow) connection->WaitForEnd();
}

TEST_F(RestAttackTest, AThousandConnectionsAreServedOrRefused) {
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (int i = 0; i < 1500; ++i) {
    idle.push_back(std::make_unique<RawConnection>(server_.http_port()));
  }
  EXPECT_TRUE(absl::StartsWith(Post("{}", "application/json"), "400 "));
  for (const auto& connection : idle) {
    connection->SendSome("GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  EXPECT_TRUE(absl::StartsWith(Post("{}", "application/json"), "400 "));
}

}  // namespace
}  // namespace sfmamba
