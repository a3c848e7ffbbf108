#ifndef SFMAMBA_SERVER_RPC_STREAM_STREAM_SET_H_
#define SFMAMBA_SERVER_RPC_STREAM_STREAM_SET_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/stream/stream_call.h"

namespace sfmamba::rpc {

// The streams of a service that live. Thread-safe.
class StreamSet {
 public:
  // Starts the stream, which leaves the set when it has ended. Returns it, for
  // gRPC.
  StreamCall* Start(const std::shared_ptr<StreamCall>& stream)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Each does what is due. To be called again and again, by none of gRPC's
  // threads.
  void Tick(bool draining) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::vector<std::weak_ptr<StreamCall>> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_STREAM_SET_H_
