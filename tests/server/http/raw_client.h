#ifndef SFMAMBA_TESTS_SERVER_HTTP_RAW_CLIENT_H_
#define SFMAMBA_TESTS_SERVER_HTTP_RAW_CLIENT_H_

#include <cstdint>
#include <string>

#include "tests/server/http/local_connection.h"

namespace sfmamba::http {

// A connection without TLS that sends bytes unchanged.
class RawClient : public LocalConnection {
 public:
  explicit RawClient(int port, int receive_buffer = 0, int from = 1)
      : LocalConnection(port, receive_buffer, from) {}

  // Returns false if the server has closed the connection.
  bool Send(const std::string& text) { return SendRaw(text); }
  // Sends up to `bytes` bytes. Stops if the server reads nothing for a while.
  // Returns the number of bytes sent.
  int64_t SendWhileItIsRead(int64_t bytes);
  // Ends the connection with a TCP reset, like a client that crashes.
  void Reset();

 private:
  ssize_t Read(char* bytes, size_t size) override;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_TESTS_SERVER_HTTP_RAW_CLIENT_H_
