#ifndef SFMAMBA_TESTS_E2E_RAW_HTTP2_H_
#define SFMAMBA_TESTS_E2E_RAW_HTTP2_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace sfmamba {

// A TCP connection to 127.0.0.1 on which the test says what it likes, from
// another address of the loopback device if `from` is given.
// Thread-compatible.
class RawConnection {
 public:
  // Sends nothing.
  explicit RawConnection(int port, const std::string& from = "127.0.0.1");
  ~RawConnection();
  RawConnection(RawConnection&& other);
  RawConnection& operator=(RawConnection&&) = delete;

  bool connected() const { return connected_; }
  // Gives the socket to the caller. Afterwards this can only be destroyed.
  int Release() { return std::exchange(fd_, -1); }
  // Blocks until the bytes are on their way; false if the peer has closed the
  // connection, or takes no more until `end`, in SteadyNow()'s time.
  bool Send(absl::string_view bytes, absl::Time end = absl::InfiniteFuture());
  // Sends what can be sent at once.
  void SendSome(absl::string_view bytes);
  // Reads and forgets what has come; false if the peer has closed the
  // connection.
  bool Discard();
  // Waits for a byte; false if the peer closes the connection instead.
  bool WaitForByte();
  // Waits until the peer closes the connection.
  void WaitForEnd();

 private:
  int fd_;
  bool connected_;
};

// HTTP/2 as a hostile client writes it (RFC 9113). Streams are odd numbers.
//
//   RawConnection connection(server.port());
//   connection.Send(Http2Preface());
//   connection.Send(Http2Headers(1, "/sfmamba.v1.VisionService/Classify"));
//   connection.Send(Http2Reset(1));

// The preface and a SETTINGS frame in which the client says how many bytes of
// each answer it takes.
std::string Http2Preface(uint32_t window = 65535);
// The beginning of a gRPC call.
std::string Http2Headers(uint32_t stream, absl::string_view path);
// Begins a gRPC call in the fewest bytes: the first call of a connection,
// `is_first`, has the server remember its headers, and the others name them
// (RFC 7541, 6.1).
std::string Http2ShortHeaders(uint32_t stream, absl::string_view path,
                              bool is_first);
// HEADERS that go on in frames of Http2Continuation(). `fields` are as RFC 7541
// writes them.
std::string Http2HeadersPart(uint32_t stream, absl::string_view fields);
std::string Http2Continuation(uint32_t stream, absl::string_view fields);
// Frames of a gRPC message; the call's last if `is_end`.
std::string Http2Message(uint32_t stream, absl::string_view message,
                         bool is_end = true);
std::string Http2Reset(uint32_t stream);
std::string Http2Ping();
// A SETTINGS frame that sets nothing and is to be acknowledged.
std::string Http2Settings();

}  // namespace sfmamba

#endif  // SFMAMBA_TESTS_E2E_RAW_HTTP2_H_
