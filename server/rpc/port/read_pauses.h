#ifndef SFMAMBA_SERVER_RPC_PORT_READ_PAUSES_H_
#define SFMAMBA_SERVER_RPC_PORT_READ_PAUSES_H_

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/rpc/port/call_floods.h"
#include "server/rpc/port/channelz.h"
#include "server/rpc/port/frame_watch.h"
#include "server/threads/worker.h"

namespace sfmamba::rpc {

// Has gRPC pause while it reads a connection that sends without pause.
//
// A thread of gRPC 1.51 that reads a connection goes on for as long as bytes
// come, whatever else is to be done, and begins the calls that they ask for. So
// a handful of clients that send small frames without pause keep all threads
// reading: callbacks are not run, other connections are not read, and calls
// that are reset at once (CVE-2023-44487) take 10 KiB each until their turn
// comes, which no callback can prevent.
//
// gRPC reads by recvmsg(), which read_pauses.cc defines for the process. After
// `kFirstBytes` of a connection without the kernel having run out of bytes it
// reads as empty (EAGAIN), so that the thread leaves it. A thread of ours then
// asks gRPC's channelz what became of the connection's calls. If they are a
// flood, by CallFloods, the connection is ended, and its address may not
// connect for `kBan`. Otherwise epoll is made to report it once more, and its
// pauses come half as often, down to one in `kMostBytes`.
//
// The calls of an address that only begin, without their messages, are few:
// beyond that a connection that begins one is ended, and its address banned.
// gRPC needs 40 us to end each, all at once where its connection ends.
//
// A connection whose headers do not end (see FrameWatch) is ended too,
// and its address banned. gRPC reads TLS by SSL_read(), which read_pauses.cc
// defines as well: there it fails for such a connection, and nobody is banned.
//
// recvmsg() belongs to the process, so there is one. Thread-safe.
class ReadPauses {
 public:
  static constexpr int kFirstBytes = 16 << 10;
  static constexpr int kMostBytes = 512 << 10;
  static constexpr absl::Duration kBan = absl::Seconds(1);

  // Never destroyed: gRPC's threads may read until the process has ended.
  static ReadPauses& Get();

  // `fd` is a new connection that gRPC will read. In a second it may begin
  // `most_unanswered` calls that are not answered, beside those that CallFloods
  // allows for answered ones.
  void Begin(int fd, int most_unanswered);

  // Bytes that the headers of one call may count, of all connections.
  void SetMostHeaders(int64_t bytes) { most_headers_ = bytes; }
  int64_t most_headers() const { return most_headers_; }
  // Calls of one address that may wait for their messages.
  void SetMostWaiting(int calls) { most_waiting_ = calls; }

  // Does recvmsg(), but fails with EAGAIN while `fd` is paused.
  ssize_t Receive(int fd, msghdr* message, int flags);

  // Resets the connection and drops what it has received, which may be
  // megabytes of calls. Its next read fails, also while it is paused.
  void Reset(int fd);

  // Refuses the peer's address for `kBan` from now on.
  void Ban(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsBanned(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns how many connections were ended since the last call.
  int TakeEnded() { return ended_.exchange(0); }

 private:
  // Descriptors have lower numbers: max_connections is below.
  static constexpr int kMostDescriptors = 1 << 16;
  static constexpr int kPaused = -1;

  // By descriptor.
  struct Reading {
    std::atomic<int> limit{0};  // Bytes until the next pause; 0: never.
    std::atomic<int> bytes{0};  // Since the kernel had none left; or kPaused.
    std::atomic<int64_t> received{0};  // Bytes, since it began.
    std::atomic<int> most_unanswered{0};
    std::atomic<bool> is_new{false};  // It was not paused yet.
    std::atomic<bool> was_reset{false};
    FrameWatch frames;  // Used by the thread that reads.
    std::string peer;   // Set by Begin().
    int waiting = 0;    // The connection's part of waiting_of_addresses_.
  };
  ReadPauses() = default;

  void EndPause(int fd);
  // Counts the calls of the connection that wait for their messages. False if
  // they and those of its address are too many.
  bool UpdateWaiting(Reading* reading, int waiting) ABSL_LOCKS_EXCLUDED(mu_);
  // Bans the peer and resets the connection.
  void End(int fd, const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  CallFloods::Seconds Count(int fd, const std::string& peer);

  std::atomic<int> most_waiting_{1024};
  std::array<Reading, kMostDescriptors> readings_;
  std::atomic<int> ended_{0};
  std::atomic<int64_t> most_headers_{128 << 10};
  absl::Mutex mu_;
  // By address.
  absl::flat_hash_map<std::string, absl::Time> bans_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, int> waiting_of_addresses_
      ABSL_GUARDED_BY(mu_);
  // The rest is used by worker_'s thread only.
  absl::flat_hash_map<int, int64_t> ids_;  // Channelz's, by descriptor.
  Channelz channelz_{absl::ZeroDuration()};
  CallFloods floods_;
  // Ends pauses. Last: it uses everything above.
  server::Worker worker_{{"read-pauses"}};
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_PORT_READ_PAUSES_H_
