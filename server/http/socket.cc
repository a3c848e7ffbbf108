#include "server/http/socket.h"

#include <sys/socket.h>

#include <cerrno>

namespace sfmamba::http {
namespace {

Socket::Outcome Failed() {
  return errno == EAGAIN || errno == EINTR ? Socket::Outcome::kAgain
                                           : Socket::Outcome::kEnded;
}

}  // namespace

Socket::Outcome PlainSocket::Read(char* bytes, size_t size, size_t* read) {
  const ssize_t got = recv(fd(), bytes, size, 0);
  if (got < 0) return Failed();
  if (got == 0) return Outcome::kEnded;
  *read = got;
  return Outcome::kDone;
}

Socket::Outcome PlainSocket::Write(absl::Span<const iovec> pieces,
                                   size_t* written) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  const ssize_t sent = sendmsg(fd(), &message, MSG_NOSIGNAL);
  if (sent < 0) return Failed();
  *written = sent;
  return Outcome::kDone;
}

void PlainSocket::CloseSending() { shutdown(fd(), SHUT_WR); }

}  // namespace sfmamba::http
