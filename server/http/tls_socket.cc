#include "server/http/tls_socket.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sfmamba::http {
namespace {

// The most that a record carries.
constexpr size_t kRecord = 16 << 10;
// What is written at a time, so that others have their turn.
constexpr size_t kWriteBlock = 256 << 10;
// Records that are read at a time, however little they carry.
constexpr int kMaxRecords = 16;

// Copies the bytes from `begin` on, as many as a record carries. Head and body
// of a small answer so make one record.
size_t Gather(absl::Span<const iovec> pieces, size_t begin,
              std::array<char, kRecord>* record) {
  size_t size = 0;
  for (const iovec& piece : pieces) {
    if (begin >= piece.iov_len) {
      begin -= piece.iov_len;
      continue;
    }
    const size_t part = std::min(piece.iov_len - begin, kRecord - size);
    std::memcpy(record->data() + size,
                static_cast<const char*>(piece.iov_base) + begin, part);
    size += part;
    begin = 0;
    if (size == kRecord) break;
  }
  return size;
}

}  // namespace

TlsSocket::TlsSocket(SSL_CTX* context, int fd)
    : Socket(fd), ssl_(SSL_new(context)) {
  // Without memory for it the connection ends with its first step.
  is_broken_ = ssl_ == nullptr || SSL_set_fd(ssl_.get(), fd) != 1;
  if (!is_broken_) SSL_set_accept_state(ssl_.get());
}

Socket::Outcome TlsSocket::Failed(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wants_to_write_ = false;
      return Outcome::kAgain;
    case SSL_ERROR_WANT_WRITE:
      wants_to_write_ = true;
      return Outcome::kAgain;
    case SSL_ERROR_ZERO_RETURN:
      return Outcome::kEnded;
    default:
      is_broken_ = true;
      if (const char* reason = ERR_reason_error_string(ERR_peek_error())) {
        failure_ = reason;
      }
      return ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST
                 ? Outcome::kPlaintext
                 : Outcome::kEnded;
  }
}

Socket::Outcome TlsSocket::Greet() {
  if (is_broken_) return Outcome::kEnded;
  ERR_clear_error();
  wants_to_write_ = false;
  const int result = SSL_do_handshake(ssl_.get());
  return result == 1 ? Outcome::kDone : Failed(result);
}

Socket::Outcome TlsSocket::Read(char* bytes, size_t size, size_t* read) {
  if (is_broken_) return Outcome::kEnded;
  wants_to_write_ = false;
  *read = 0;
  Outcome outcome = Outcome::kDone;
  // Only a record that fits is begun, so that none of it stays behind.
  for (int i = 0; i < kMaxRecords && outcome == Outcome::kDone &&
                  (i == 0 || size - *read >= kRecord);
       ++i) {
    ERR_clear_error();
    size_t got = 0;
    const int result =
        SSL_read_ex(ssl_.get(), bytes + *read, size - *read, &got);
    if (result != 1) outcome = Failed(result);
    *read += got;
  }
  return *read > 0 ? Outcome::kDone : outcome;
}

bool TlsSocket::has_more() const {
  return !is_broken_ && SSL_pending(ssl_.get()) > 0;
}

Socket::Outcome TlsSocket::Write(absl::Span<const iovec> pieces,
                                 size_t* written) {
  if (is_broken_) return Outcome::kEnded;
  wants_to_write_ = false;
  *written = 0;
  Outcome outcome = Outcome::kDone;
  std::array<char, kRecord> record;
  while (*written < kWriteBlock && outcome == Outcome::kDone) {
    const size_t size = Gather(pieces, *written, &record);
    if (size == 0) break;
    ERR_clear_error();
    size_t sent = 0;
    const int result = SSL_write_ex(ssl_.get(), record.data(), size, &sent);
    if (result != 1) outcome = Failed(result);
    *written += sent;
  }
  return *written > 0 ? Outcome::kDone : outcome;
}

void TlsSocket::CloseSending() {
  if (!is_broken_ && SSL_is_init_finished(ssl_.get())) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());  // Says that it ends; what cannot be sent is not.
  }
  shutdown(fd(), SHUT_WR);
}

}  // namespace sfmamba::http
