#include "server/http/request_head.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::http {
namespace {

constexpr size_t kMax = 1000;

TEST(RequestHeadTest, EndsWithAnEmptyLine) {
  const std::string whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(ReadHead(whole.substr(0, size), kMax).status, 0) << size;
  }
  const RequestHead head = ReadHead(whole + "more", kMax);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.text, whole);
  EXPECT_EQ(ReadHead("GET / HTTP/1.0\r\n\r\n", kMax).status, 200);
}

TEST(RequestHeadTest, ALongOneIsRefusedWhetherItEndsOrNot) {
  const std::string line = absl::StrCat("A: ", std::string(kMax, 'x'));
  EXPECT_EQ(ReadHead("GET / HTTP/1.1\r\n" + line, kMax).status, 431);
  EXPECT_EQ(ReadHead("GET / HTTP/1.1\r\n" + line + "\r\n\r\n", kMax).status,
            431);
  const std::string exact = "GET / HTTP/1.1\r\nA: b\r\n\r\n";
  EXPECT_EQ(ReadHead(exact, exact.size()).status, 200);
  EXPECT_EQ(ReadHead(exact, exact.size() - 1).status, 431);
}

TEST(RequestHeadTest, ABodyIsRefused) {
  for (const char* header :
       {"Content-Length: 1", "content-length: 600000000", "Content-Length: -1",
        "Content-Length: 1, 1", "Transfer-Encoding: chunked",
        "transfer-encoding:gzip"}) {
    EXPECT_EQ(
        ReadHead(absl::StrCat("POST /metrics HTTP/1.1\r\n", header, "\r\n\r\n"),
                 kMax)
            .status,
        413)
        << header;
  }
  EXPECT_EQ(
      ReadHead("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", kMax).status,
      200);
}

TEST(RequestHeadTest, RangesAndPackingsAreLeftOut) {
  EXPECT_EQ(ReadHead("GET / HTTP/1.1\r\nRange: bytes=0-,0-,0-\r\nHost: a\r\n"
                     "content-encoding: gzip\r\nExpect: 100-continue\r\n\r\n",
                     kMax)
                .text,
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(RequestHeadTest, LinesThatAreNoHeadersAreRefused) {
  for (const std::string& line :
       {std::string("no colon"), std::string(": no name"),
        std::string(" Range: bytes=0-"), std::string("A: b\nRange: bytes=0-"),
        std::string("A: \0", 4), std::string("")}) {
    EXPECT_NE(
        ReadHead(absl::StrCat("GET / HTTP/1.1\r\n", line, "\r\nB: c\r\n\r\n"),
                 kMax)
            .text,
        absl::StrCat("GET / HTTP/1.1\r\n", line, "\r\nB: c\r\n\r\n"));
  }
  EXPECT_EQ(ReadHead("GET / HTTP/1.1\r\nA: b\n Range: x\r\n\r\n", kMax).status,
            400);
}

}  // namespace
}  // namespace sfmamba::http
