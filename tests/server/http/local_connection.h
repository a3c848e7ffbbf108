#ifndef SFMAMBA_TESTS_SERVER_HTTP_LOCAL_CONNECTION_H_
#define SFMAMBA_TESTS_SERVER_HTTP_LOCAL_CONNECTION_H_

#include <sys/types.h>

#include <string>

namespace sfmamba::http {

// One connection to 127.0.0.1 over which HTTP is spoken, in the clear or
// through TLS. Waits end the test after a limit.
class LocalConnection {
 public:
  LocalConnection(const LocalConnection&) = delete;

  // Sends the connection's bytes as they are; false if the server has closed
  // it.
  bool SendRaw(const std::string& bytes);
  // Returns what comes until the server ends the connection.
  std::string ReadAll();
  // Returns one answer: its head and as much body as that says, or none if
  // `has_body` is false, as for HEAD. Less if the connection ends.
  std::string ReadAnswer(bool has_body = true);
  // Sends no more.
  void CloseSending();

 protected:
  // `receive_buffer` is about the number of bytes that the client takes without
  // reading; 0: as many as the system likes.
  // `from` is a further address of this machine: 127.0.0.`from`.
  LocalConnection(int port, int receive_buffer, int from = 1);
  ~LocalConnection();

  int fd() const { return fd_; }

 private:
  // Reads at most `size` bytes, after decryption; at most 0 at the end.
  virtual ssize_t Read(char* bytes, size_t size) = 0;
  // Reads a block more into received_; false at the end.
  bool ReadMore();

  const int fd_;
  std::string received_;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_TESTS_SERVER_HTTP_LOCAL_CONNECTION_H_
