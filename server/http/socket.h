#ifndef SFMAMBA_SERVER_HTTP_SOCKET_H_
#define SFMAMBA_SERVER_HTTP_SOCKET_H_

#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::http {

// What a connection reads from and writes to, in clear (PlainSocket) or through
// TLS (TlsSocket). Nothing here waits. Used by one thread.
class Socket {
 public:
  enum class Outcome {
    kDone,       // At least a byte was read or written.
    kAgain,      // Try again once epoll says so; see wants_to_write().
    kEnded,      // The peer has ended the connection, or broken it.
    kPlaintext,  // Of Greet() only: the peer speaks HTTP in clear.
  };

  // Owns `fd`, which does not block.
  explicit Socket(int fd) : fd_(fd) {}
  virtual ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;

  int fd() const { return fd_; }
  // For a socket that takes over.
  int Release() { return std::exchange(fd_, -1); }

  // Whether Greet() is to be called until it returns kDone, before all else.
  virtual bool greets() const { return false; }
  virtual Outcome Greet() { return Outcome::kDone; }
  // Why Greet() returned kEnded or kPlaintext.
  virtual absl::string_view failure() const { return ""; }

  // Reads up to `size` bytes.
  virtual Outcome Read(char* bytes, size_t size, size_t* read) = 0;
  // Whether bytes are left that epoll does not know of: after a read of less
  // than 16 KiB at most.
  virtual bool has_more() const { return false; }
  // Whether what returned kAgain last goes on when the socket can be written.
  virtual bool wants_to_write() const { return false; }

  // Writes a first part of `pieces`. After kAgain the next call brings the same
  // bytes again, and maybe more.
  virtual Outcome Write(absl::Span<const iovec> pieces, size_t* written) = 0;
  // Tells the peer that no more is written.
  virtual void CloseSending() = 0;

 private:
  int fd_;
};

// TCP in clear.
class PlainSocket final : public Socket {
 public:
  using Socket::Socket;

  Outcome Read(char* bytes, size_t size, size_t* read) override;
  Outcome Write(absl::Span<const iovec> pieces, size_t* written) override;
  void CloseSending() override;
};

}  // namespace sfmamba::http

#endif  // SFMAMBA_SERVER_HTTP_SOCKET_H_
