#include "tests/e2e/raw_http2.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_clock.h"

namespace sfmamba {
namespace {

enum Type : uint8_t { kData = 0, kHeaders = 1, kReset = 3, kSettings = 4 };
constexpr uint8_t kPing = 6, kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;
constexpr size_t kMaxFrame = 16384;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>(uint64_t{value} >> shift));
  }
  return text;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream,
                  absl::string_view payload) {
  return absl::StrCat(BigEndian(payload.size(), 3), BigEndian(type, 1),
                      BigEndian(flags, 1), BigEndian(stream, 4), payload);
}

// Encodes a string without compression (RFC 7541, 5.1 and 5.2).
std::string String(absl::string_view text) {
  constexpr size_t kPrefix = 127;
  std::string length = BigEndian(std::min(text.size(), kPrefix), 1);
  if (text.size() >= kPrefix) {
    size_t rest = text.size() - kPrefix;
    for (; rest >= 128; rest /= 128) length += BigEndian(128 + rest % 128, 1);
    length += BigEndian(rest, 1);
  }
  return absl::StrCat(length, text);
}

// Encodes a header field that the receiver need not store (RFC 7541, 6.2.2).
std::string Literal(absl::string_view name, absl::string_view value) {
  return absl::StrCat(BigEndian(0, 1), String(name), String(value));
}

}  // namespace

RawConnection::RawConnection(int port, const std::string& from)
    : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  const int yes = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (inet_pton(AF_INET, from.c_str(), &address.sin_addr) == 1) {
    bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  }
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connected_ =
      connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

RawConnection::~RawConnection() {
  if (fd_ >= 0) close(fd_);
}

RawConnection::RawConnection(RawConnection&& other)
    : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}

bool RawConnection::Send(absl::string_view bytes, absl::Time end) {
  while (!bytes.empty()) {
    // Also wakes up when the peer closes the connection, because a closed
    // connection may never accept more bytes.
    pollfd ready = {fd_, POLLOUT | POLLRDHUP, 0};
    const auto left = absl::ToInt64Milliseconds(end - base::SteadyNow());
    const int limit = end == absl::InfiniteFuture()
                          ? -1
                          : static_cast<int>(std::max<int64_t>(0, left));
    if (poll(&ready, 1, limit) <= 0 || (ready.revents & POLLRDHUP) != 0) {
      return false;
    }
    const ssize_t size =
        send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno != EAGAIN) return false;
    bytes.remove_prefix(std::max<ssize_t>(size, 0));
  }
  return true;
}

void RawConnection::SendSome(absl::string_view bytes) {
  (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool RawConnection::Discard() {
  char bytes[16384];
  while (true) {
    const ssize_t size = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN;
    if (size == 0) return false;
  }
}

bool RawConnection::WaitForByte() {
  char byte;
  return recv(fd_, &byte, 1, 0) == 1;
}

void RawConnection::WaitForEnd() {
  while (WaitForByte()) {
  }
}

std::string Http2Preface(uint32_t window) {
  constexpr uint32_t kInitialWindowSize = 4;
  return absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                      Frame(kSettings, 0, 0,
                            absl::StrCat(BigEndian(kInitialWindowSize, 2),
                                         BigEndian(window, 4))));
}

std::string Http2Headers(uint32_t stream, absl::string_view path) {
  return Frame(
      kHeaders, kEndHeaders, stream,
      absl::StrCat(Literal(":method", "POST"), Literal(":scheme", "http"),
                   Literal(":path", path), Literal(":authority", "test"),
                   Literal("content-type", "application/grpc"),
                   Literal("te", "trailers")));
}

std::string Http2HeadersPart(uint32_t stream, absl::string_view fields) {
  return Frame(kHeaders, 0, stream, fields);
}

std::string Http2Continuation(uint32_t stream, absl::string_view fields) {
  return Frame(kContinuation, 0, stream, fields);
}

std::string Http2ShortHeaders(uint32_t stream, absl::string_view path,
                              bool is_first) {
  constexpr char kPost = '\x83', kHttp = '\x86', kLiteral = '\x40';
  // Refers to the field that was added last to the dynamic table: index 62 with
  // the highest bit set (RFC 7541, 2.3.3 and 6.1).
  constexpr char kNewest = '\xbe';
  std::string fields = {kPost, kHttp};
  if (is_first) {
    for (const std::string& field :
         {Literal(":path", path), Literal(":authority", "test"),
          Literal("content-type", "application/grpc"),
          Literal("te", "trailers")}) {
      fields += kLiteral + field.substr(1);
    }
  } else {
    for (int i = 3; i >= 0; --i) fields += static_cast<char>(kNewest + i);
  }
  return Frame(kHeaders, kEndHeaders, stream, fields);
}

std::string Http2Message(uint32_t stream, absl::string_view message,
                         bool is_end) {
  const std::string all =
      absl::StrCat(BigEndian(0, 1), BigEndian(message.size(), 4), message);
  std::string frames;
  for (size_t begin = 0; begin < all.size(); begin += kMaxFrame) {
    const bool is_last = begin + kMaxFrame >= all.size();
    absl::StrAppend(&frames,
                    Frame(kData, is_last && is_end ? kEndStream : 0, stream,
                          absl::string_view(all).substr(begin, kMaxFrame)));
  }
  return frames;
}

std::string Http2Reset(uint32_t stream) {
  constexpr uint32_t kCancel = 8;
  return Frame(kReset, 0, stream, BigEndian(kCancel, 4));
}

std::string Http2Ping() { return Frame(kPing, 0, 0, "12345678"); }

std::string Http2Settings() { return Frame(kSettings, 0, 0, ""); }

}  // namespace sfmamba
