#ifndef SFMAMBA_TESTS_E2E_RAW_HTTP2_H_
#define SFMAMBA_TESTS_E2E_RAW_HTTP2_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba {

// A TCP connection to 127.0.0.1 for arbitrary bytes. If `from` is given, the
// connection comes from this address of the loopback device. Thread-compatible.
class RawConnection {
 public:
  // Only connects.
  explicit RawConnection(int port, const std::string& from = "127.0.0.1");
  ~RawConnection();
  RawConnection(RawConnection&& other);
  RawConnection& operator=(RawConnection&&) = delete;

  bool connected() const { return connected_; }
  // Gives the socket to the caller. Afterwards this object can only be
  // destroyed.
  int Release() { return std::exchange(fd_, -1); }
  // Blocks until the bytes are sent. Returns false if the peer has closed the
  // connection. Also returns false if the peer does not accept all bytes until
  // `end`, by SteadyNow().
  bool Send(absl::string_view bytes, absl::Time end = absl::InfiniteFuture());
  // Sends as many bytes as possible without blocking.
  void SendSome(absl::string_view bytes);
  // Reads and discards the bytes that have arrived. Returns false if the peer
  // has closed the connection.
  bool Discard();
  // Waits until a byte arrives. Returns false if the peer closes the connection
  // first.
  bool WaitForByte();
  // Waits until the peer closes the connection.
  void WaitForEnd();

 private:
  int fd_;
  bool connected_;
};

// HTTP/2 frames of a hostile client (RFC 9113). Stream numbers are odd.
//
//   RawConnection connection(server.port());
//   connection.Send(Http2Preface());
//   connection.Send(Http2Headers(1, "/sfmamba.v1.VisionService/Classify"));
//   connection.Send(Http2Reset(1));

// Returns the preface and a SETTINGS frame. `window` is the number of bytes
// that the client accepts of each answer.
std::string Http2Preface(uint32_t window = 65535);
// Returns the frame that starts a gRPC call. `path` must be shorter than 16000
// bytes, because the frame may have 16384 bytes.
std::string Http2Headers(uint32_t stream, absl::string_view path);
// Returns frames that start a gRPC call in as few bytes as possible. If
// `is_first`, the server stores the headers. The frames of later calls on the
// connection only refer to them (RFC 7541, 6.1).
std::string Http2ShortHeaders(uint32_t stream, absl::string_view path,
                              bool is_first);
// Returns a HEADERS frame whose header list is continued by the frames of
// Http2Continuation(). `fields` is encoded as in RFC 7541.
std::string Http2HeadersPart(uint32_t stream, absl::string_view fields);
std::string Http2Continuation(uint32_t stream, absl::string_view fields);
// Returns the frames of a gRPC message. If `is_end`, they also end the client's
// side of the call.
std::string Http2Message(uint32_t stream, absl::string_view message,
                         bool is_end = true);
std::string Http2Reset(uint32_t stream);
std::string Http2Ping();
// Returns an empty SETTINGS frame, which the peer must acknowledge.
std::string Http2Settings();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_RAW_HTTP2_H_
