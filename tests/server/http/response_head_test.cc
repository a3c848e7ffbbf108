#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "server/http/connection.h"

namespace sfmamba::http {
namespace {

TEST(ResponseHeadTest, HasLineHeadersLengthAndDate) {
  HttpResponse response;
  response.status = 404;
  response.headers = {{"Content-Type", "text/plain"}};
  response.body = {"abc", "", "de"};
  EXPECT_EQ(ResponseHead(response, /*keep_alive=*/true,
                         absl::FromUnixSeconds(784111777)),
            "HTTP/1.1 404 Not Found\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: text/plain\r\n"
            "Content-Length: 5\r\n"
            "Connection: keep-alive\r\n\r\n");
}

TEST(ResponseHeadTest, SomeStatusesHaveNoBodyAndSomeNoName) {
  HttpResponse response;
  for (const auto& [status, line] :
       {std::pair{204, "HTTP/1.1 204 No Content\r\n"},
        std::pair{299, "HTTP/1.1 299 <unknown-status>\r\n"}}) {
    response.status = status;
    const std::string head = ResponseHead(response, false, absl::UnixEpoch());
    EXPECT_EQ(head.substr(0, head.find('\n') + 1), line);
    EXPECT_EQ(head.find("Content-Length") == head.npos, status == 204);
  }
}

TEST(ResponseHeadTest, ALineBreakInAHeaderAddsNoHeader) {
  HttpResponse response;
  response.headers = {{"A", "b\r\nC: d"}, {"E\n", "f"}, {"G", "h"}};
  const std::string head = ResponseHead(response, false, absl::UnixEpoch());
  EXPECT_EQ(head.find("C: d"), head.npos);
  EXPECT_EQ(head.find("E"), head.npos);
  EXPECT_NE(head.find("G: h\r\n"), head.npos);
}

}  // namespace
}  // namespace sfmamba::http
