#ifndef SFMAMBA_SERVER_RPC_STREAM_STREAM_ITEM_H_
#define SFMAMBA_SERVER_RPC_STREAM_STREAM_ITEM_H_

#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"

namespace sfmamba::rpc {

// One request of a stream and its answer. Until it is destroyed the answer
// counts as held memory: that is to be done once it is sent.
class StreamItem {
 public:
  virtual ~StreamItem() = default;

  // `serving` is the error to answer at once, or OK. Called once. Calls `done`
  // exactly once, as the last act: the item may be destroyed in it.
  virtual void Run(const absl::Status& serving,
                   absl::AnyInvocable<void()> done) = 0;
  // At any time, by any thread, until `done` was called.
  virtual void Cancel() = 0;

  // What the client calls it; fixed.
  virtual const std::string& id() const = 0;
  // Whether its answer waits for those of earlier ones that say the same;
  // fixed.
  virtual bool in_order() const = 0;

  // Once `done` was called: the message to be sent.
  const grpc::ByteBuffer& answer() const { return answer_; }
  // Once `done` was called: an error that ends the stream in place of the
  // answer, or OK.
  const absl::Status& stream_error() const { return stream_error_; }

 protected:
  grpc::ByteBuffer answer_;
  absl::Status stream_error_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_STREAM_ITEM_H_
