#ifndef SFMAMBA_SERVER_RPC_GRPC_THREADS_H_
#define SFMAMBA_SERVER_RPC_GRPC_THREADS_H_

#include <algorithm>
#include <memory>

#include "absl/time/time.h"
#include "server/base/periodic.h"

namespace sfmamba::rpc {

// Has gRPC run a process's callbacks by fewer threads while it lives.
//
// gRPC 1.51 has a thread for two processors, but 2 to 16. One of them polls.
// When something comes it first wakes another one to poll in its place, and
// that wakes another to tell it of what has ended. So a request that finds the
// threads idle costs four changes of threads, where with one thread it costs
// one.
//
// But one thread that is sent much may read on and on and not come to the
// callbacks, and a callback that blocks holds up all others. So a callback is
// sent every `beat`, and when one has not been run by the next beat, those that
// are kept out are let in for the time `let_in`.
//
// A process has at most one. Thread-safe.
class GrpcThreads {
 public:
  struct Options {
    int used = 1;  // At least 1. If gRPC has no more threads, all are used.
    absl::Duration beat = absl::Milliseconds(20);
    absl::Duration let_in = absl::Seconds(10);
  };

  // Blocks until all threads that are not used are kept out.
  explicit GrpcThreads(const Options& options);
  // Lets them go on, and waits until they do.
  ~GrpcThreads();

  // How many threads a server needs that may use so many processors: they
  // receive, check and send, and others decode and compute. A quarter.
  static int Enough(int processors) { return std::max(1, processors / 4); }

  // How many are kept out now.
  int kept_out() const;

 private:
  class Gate;

  const std::unique_ptr<Gate> gate_;
  std::unique_ptr<server::Periodic> beats_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_GRPC_THREADS_H_
