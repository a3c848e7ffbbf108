#include "server/http/request_head.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

// 200, or the status that a request with that head is refused with.
int StatusOf(const std::string& head) {
  RequestHead parsed;
  const auto refusal = ParseHead(head, &parsed);
  return refusal.has_value() ? refusal->status : 200;
}

int StatusWith(const std::string& headers) {
  return StatusOf(absl::StrCat("POST /a HTTP/1.1\r\n", headers, "\r\n\r\n"));
}

TEST(RequestHeadTest, HasLineAndHeaders) {
  RequestHead head;
  EXPECT_FALSE(ParseHead("POST /a%20b?c=d+e&f=g=h HTTP/1.1\r\nHost: x\r\n"
                         "CONTENT-length:  12 \r\nA: b\r\na: c: d\r\n\r\n",
                         &head)
                   .has_value());
  EXPECT_EQ(head.request.method, "POST");
  EXPECT_EQ(head.request.path, "/a b");
  EXPECT_EQ(head.request.query.find("c")->second, "d e");
  EXPECT_EQ(head.request.query.find("f")->second, "g=h");
  EXPECT_EQ(head.request.headers.find("host")->second, "x");
  EXPECT_EQ(head.request.headers.count("a"), 2);
  EXPECT_EQ(head.request.headers.find("a")->second, "b");
  EXPECT_EQ(head.body_bytes, 12);
  EXPECT_FALSE(head.is_chunked);
  EXPECT_TRUE(head.keep_alive);
}

TEST(RequestHeadTest, SaysWhetherTheConnectionGoesOn) {
  const std::pair<const char*, bool> heads[] = {
      {"GET / HTTP/1.1\r\n\r\n", true},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n",
       false},
  };
  for (const auto& [text, keep_alive] : heads) {
    RequestHead head;
    EXPECT_FALSE(ParseHead(text, &head).has_value()) << text;
    EXPECT_EQ(head.keep_alive, keep_alive) << text;
  }
}

TEST(RequestHeadTest, OtherLinesThanARequestsAreRefused) {
  for (const char* line :
       {"", " ", "GET", "GET /", "GET / ", " GET / HTTP/1.1", "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ", "G(T / HTTP/1.1", "GET / HTTQ/1.1",
        "GET /\t HTTP/1.1", "GET /\x80 HTTP/1.1", "GET /%00 HTTP/1.1",
        "GET /%0d%0a HTTP/1.1"}) {
    EXPECT_EQ(StatusOf(absl::StrCat(line, "\r\n\r\n")), 400) << line;
  }
  for (const char* version : {"2.0", "1.2", "1", "1.10", "0.9"}) {
    EXPECT_EQ(StatusOf(absl::StrCat("GET / HTTP/", version, "\r\n\r\n")), 505)
        << version;
  }
}

TEST(RequestHeadTest, LinesThatAreNoHeadersAreRefused) {
  for (const char* line : {"no colon", ": no name", " A: b", "\tA: b", "A : b",
                           "A b: c", "A: b\r\n folded: c", "A: b\r\n"}) {
    EXPECT_EQ(StatusWith(line), 400) << line;
  }
}

TEST(RequestHeadTest, LengthsThatServersReadInDifferentWaysAreRefused) {
  for (const char* headers :
       {"Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1\r\ncontent-length: 2", "Content-Length: 1, 1",
        "Content-Length: -1", "Content-Length: +1", "Content-Length: 0x1",
        "Content-Length: 1 1", "Content-Length:", "Content-Length: 1.0",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked", "Host: a\r\nHost: b"}) {
    EXPECT_EQ(StatusWith(headers), 400) << headers;
  }
  EXPECT_EQ(StatusWith("Transfer-Encoding: gzip"), 501);
  EXPECT_EQ(StatusWith("Transfer-Encoding: xchunked"), 501);
  EXPECT_EQ(StatusWith("Transfer-Encoding: Chunked"), 200);
  EXPECT_EQ(StatusOf("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            400);
  EXPECT_EQ(StatusWith("Content-Length: 99999999999999999999"), 200);
}

TEST(RequestHeadTest, OnlyContinueIsExpected) {
  EXPECT_EQ(StatusWith("Expect: 200-ok"), 417);
  RequestHead head;
  EXPECT_FALSE(
      ParseHead("POST / HTTP/1.1\r\nExpect: 100-Continue\r\n\r\n", &head)
          .has_value());
  EXPECT_TRUE(head.expects_continue);
}

TEST(RequestHeadTest, MessagesSayWhatWasGotAndShortenIt) {
  RequestHead head;
  const auto refusal = ParseHead(
      "GET / HTTP/1.1\r\nContent-Length: " + std::string(500, 'x') + "\r\n\r\n",
      &head);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->message, "expected a number as Content-Length, got \"" +
                                  std::string(60, 'x') + "...\"");
}

}  // namespace
}  // namespace sfmamba::http
