#ifndef SFMAMBA_TESTS_SERVER_HTTP_RAW_CLIENT_H_
#define SFMAMBA_TESTS_SERVER_HTTP_RAW_CLIENT_H_

#include <string>

namespace sfmamba::http {

// One connection to 127.0.0.1 that sends bytes as they are given. Waits end the
// test after a limit.
class RawClient {
 public:
  // `receive_buffer`: the bytes that the client takes without reading, about;
  // 0: as many as the system likes.
  explicit RawClient(int port, int receive_buffer = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;

  // False if the server has closed the connection.
  bool Send(const std::string& text);
  // What comes until the server ends the connection.
  std::string ReadAll();
  // One answer: its head and as much body as that says. Without one if
  // `has_body` is false, as that of HEAD. Less if the connection ends.
  std::string ReadAnswer(bool has_body = true);
  // Sends no more.
  void CloseSending();
  // Ends the connection as a client does that crashes.
  void Reset();

 private:
  // Reads a block more; false at the end.
  bool ReadMore();

  const int fd_;
  std::string received_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_TESTS_SERVER_HTTP_RAW_CLIENT_H_
