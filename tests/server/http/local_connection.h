#ifndef SFMAMBA_TESTS_SERVER_HTTP_LOCAL_CONNECTION_H_
#define SFMAMBA_TESTS_SERVER_HTTP_LOCAL_CONNECTION_H_

#include <sys/types.h>

#include <string>

namespace sfmamba::http {

// An HTTP connection to 127.0.0.1, with or without TLS. A wait that exceeds a
// time limit ends the test.
class LocalConnection {
 public:
  LocalConnection(const LocalConnection&) = delete;

  // Sends the bytes unchanged. Returns false if the server has closed the
  // connection.
  bool SendRaw(const std::string& bytes);
  // Returns all bytes that arrive until the server ends the connection.
  std::string ReadAll();
  // Returns one answer with its head and its body. The head states the body's
  // length. If `has_body` is false, as for HEAD, no body is read. The result is
  // shorter if the connection ends early.
  std::string ReadAnswer(bool has_body = true);
  // Tells the server that the client sends nothing more.
  void CloseSending();

 protected:
  // `receive_buffer` is the approximate size of the system's receive buffer in
  // bytes. The buffer contains the bytes that have arrived but were not read
  // yet. If `receive_buffer` is 0, the system chooses the size. The client's
  // address is 127.0.0.`from`.
  LocalConnection(int port, int receive_buffer, int from = 1);
  ~LocalConnection();

  int fd() const { return fd_; }

 private:
  // Reads and decrypts at most `size` bytes. Returns 0 or less at the end.
  virtual ssize_t Read(char* bytes, size_t size) = 0;
  // Appends the next block to `received_`. Returns false at the end.
  bool ReadMore();

  const int fd_;
  std::string received_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_TESTS_SERVER_HTTP_LOCAL_CONNECTION_H_
