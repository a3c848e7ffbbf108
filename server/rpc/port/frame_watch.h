#ifndef SFMAMBA_SERVER_RPC_PORT_FRAME_WATCH_H_
#define SFMAMBA_SERVER_RPC_PORT_FRAME_WATCH_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace sfmamba::rpc {

// Follows the frames of HTTP/2 (RFC 9113, 4.1) in what a connection receives,
// by their heads. Finds a client that sends headers without end, and counts the
// calls that only begin.
//
// gRPC 1.51 keeps a call's header block until it ends, bounds it only then, and
// reads one long string anew from its start with each piece that comes
// (CVE-2023-33953).
//
// Thread-compatible.
class FrameWatch {
 public:
  // Counted for each frame of a block beside the bytes of its payload.
  static constexpr int64_t kFrameCost = 1 << 10;
  // A call waits for its message until this many bytes of it, or its last
  // frame, have come.
  static constexpr int64_t kLeastMessage = 1 << 10;

  // Unless `counts_calls`, waiting() is 0 and nothing is kept of a call.
  explicit FrameWatch(bool counts_calls = true) : counts_calls_(counts_calls) {}

  // Takes the bytes that come next. False once a block counts more than `most`
  // bytes; the connection is then to be ended. True for a connection that does
  // not begin with HTTP/2's preface.
  bool Take(absl::string_view bytes, int64_t most);

  // Returns how many calls wait for their message.
  int waiting() const { return static_cast<int>(waiting_.size()); }

 private:
  // False if the frame whose head is complete makes its block too long.
  bool BeginFrame(int64_t most);
  void CountCall(char type, char flags, uint32_t stream);

  static constexpr size_t kHeadSize = 9;

  bool counts_calls_;
  bool followed_ = true;
  size_t preface_ = 0;    // Bytes of the preface that have come.
  uint32_t payload_ = 0;  // Bytes of the frame that are still to come.
  size_t head_size_ = 0;
  char head_[kHeadSize] = {};
  int64_t block_ = 0;    // What the last block counts.
  uint32_t newest_ = 0;  // The last call that has begun.
  // Bytes that have come of the messages of calls that wait, by stream.
  absl::flat_hash_map<uint32_t, int64_t> waiting_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_FRAME_WATCH_H_
