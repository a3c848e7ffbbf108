#ifndef SFMAMBA_TESTS_FUZZ_HTTP_SEEDS_H_
#define SFMAMBA_TESTS_FUZZ_HTTP_SEEDS_H_

#include <string>
#include <utility>
#include <vector>

namespace sfmamba {

// Returns pairs of a name and the bytes of an HTTP connection. The first byte
// is not part of the connection. Its value determines the size of the parts in
// which the fuzzer passes the other bytes on.
inline std::vector<std::pair<std::string, std::string>> HttpConnections() {
  const std::string body = "Content-Length: 4\r\n\r\nbody";
  const std::string chunks =
      "Transfer-Encoding: chunked\r\n\r\n"
      "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: c\r\n\r\n";
  return {
      {"get", "\x3fGET /a%20b?c=d+e&f HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"old", "\x01GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"},
      {"proxied", "\x03GET http://a/b HTTP/1.1\r\nConnection: close\r\n\r\n"},
      {"body", "\x07POST /v1/models/a:classify HTTP/1.1\r\n" + body},
      {"chunks", "\x05PUT /a HTTP/1.1\r\n" + chunks},
      {"pipelined", "\x09POST /a HTTP/1.1\r\n" + body +
                        "\r\nPUT /b HTTP/1.1\r\n" + chunks +
                        "GET / HTTP/1.1\r\n\r\n"},
      {"continue", "\x02POST / HTTP/1.1\r\nExpect: 100-continue\r\n" + body},
      {"packed", "\x02POST / HTTP/1.1\r\nContent-Encoding: gzip\r\n" + body},
      {"both", "\x02POST / HTTP/1.1\r\nContent-Length: 4\r\n" + chunks},
  };
}

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_FUZZ_HTTP_SEEDS_H_
