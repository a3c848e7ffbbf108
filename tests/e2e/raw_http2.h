#ifndef SFMAMBA_TESTS_E2E_RAW_HTTP2_H_
#define SFMAMBA_TESTS_E2E_RAW_HTTP2_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba {

// A TCP connection to 127.0.0.1 for arbitrary bytes. If `from` is given, it
// comes from another address of the loopback device. Thread-compatible.
class RawConnection {
 public:
  // Sends nothing.
  explicit RawConnection(int port, const std::string& from = "127.0.0.1");
  ~RawConnection();
  RawConnection(RawConnection&& other);
  RawConnection& operator=(RawConnection&&) = delete;

  bool connected() const { return connected_; }
  // Gives the socket to the caller. Afterwards this object can only be
  // destroyed.
  int Release() { return std::exchange(fd_, -1); }
  // Blocks until the bytes are sent. Returns false if the peer has closed the
  // connection, or if it accepts no more until `end`, in SteadyNow()'s time.
  bool Send(absl::string_view bytes, absl::Time end = absl::InfiniteFuture());
  // Sends as many bytes as possible without blocking.
  void SendSome(absl::string_view bytes);
  // Reads and discards the bytes that have arrived. Returns false if the peer
  // has closed the connection.
  bool Discard();
  // Waits for a byte. Returns false if the peer closes the connection instead.
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
// Returns the frame that starts a gRPC call.
std::string Http2Headers(uint32_t stream, absl::string_view path);
// Starts a gRPC call in as few bytes as possible. The first call of a
// connection, `is_first`, makes the server index its headers. Later calls refer
// to them (RFC 7541, 6.1).
std::string Http2ShortHeaders(uint32_t stream, absl::string_view path,
                              bool is_first);
// Returns HEADERS that frames of Http2Continuation() continue. `fields` are
// encoded by RFC 7541.
std::string Http2HeadersPart(uint32_t stream, absl::string_view fields);
std::string Http2Continuation(uint32_t stream, absl::string_view fields);
// Returns the frames of a gRPC message, which ends the call if `is_end`.
std::string Http2Message(uint32_t stream, absl::string_view message,
                         bool is_end = true);
std::string Http2Reset(uint32_t stream);
std::string Http2Ping();
// Returns an empty SETTINGS frame, which the peer must acknowledge.
std::string Http2Settings();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_RAW_HTTP2_H_
