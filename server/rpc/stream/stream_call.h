#ifndef SFMAMBA_SERVER_RPC_STREAM_STREAM_CALL_H_
#define SFMAMBA_SERVER_RPC_STREAM_STREAM_CALL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/observability/metrics.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/call.h"
#include "server/rpc/send_watch.h"
#include "server/security/caller.h"

namespace sfmamba::rpc {

// One request of a stream and its answer. Until it is destroyed the answer
// counts as held memory: that is to be done once it is sent.
class StreamItem {
 public:
  virtual ~StreamItem() = default;

  // `serving` is the error to answer at once, or OK. Called once. `done` is
  // called exactly once, as the last act: the item may be destroyed in it.
  void Run(const absl::Status& serving, absl::AnyInvocable<void()> done) {
    done_ = std::move(done);
    Begin(serving);
  }
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
  // Brings about the answer, now or later, and then calls End().
  virtual void Begin(const absl::Status& serving) = 0;
  // Calls `done`, in which the item may be destroyed.
  void End() { std::exchange(done_, nullptr)(); }

  grpc::ByteBuffer answer_;
  absl::Status stream_error_;

 private:
  absl::AnyInvocable<void()> done_;
};

// A call of many requests: they come one after another, their answers go as
// they are ready, or in their order where they ask for that. At most
// `max_in_flight` requests are between their arrival and the end of their
// answer's way to the client, and beyond kAlwaysInFlight only while their
// messages are less than kMostBytes. Otherwise no further message is read, so
// that HTTP/2's flow control holds back a client that sends faster than it
// reads. One message is read and one is sent at a time. What a message
// means is said by a function of the method's.
//
// Thread-safe. It owns itself from Start() on, until gRPC is done with it;
// whoever keeps a share may call its methods longer.
class StreamCall final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public std::enable_shared_from_this<StreamCall> {
 public:
  // Most time with nothing in flight before a stream is ended.
  static constexpr absl::Duration kMostIdle = absl::Minutes(10);
  // Most time with nothing in flight while the server drains.
  static constexpr absl::Duration kMostIdleDraining = absl::Seconds(1);

  static constexpr int kAlwaysInFlight = 64;
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

  struct Options {
    observability::Method method = observability::Method::kStreamPredict;
    int max_in_flight = 1;  // At least 1.
    // Sent once the server drains; if it is not valid, nothing is.
    grpc::ByteBuffer draining_notice;
    // Returns the error that new requests are answered with, or OK.
    std::function<absl::Status()> serving;
    // Asked at each Tick(): the stream ends at once when it is not allowed.
    StreamRights rights;
  };

  // Takes what the client has sent, `received`'s bytes: returns the request
  // that it is, or null if it is none, or the error that ends the stream. One
  // call at a time, in the order of arrival.
  using Take = absl::AnyInvocable<absl::StatusOr<std::unique_ptr<StreamItem>>(
      StreamCall& stream, grpc::ByteBuffer* received)>;

  // All that is passed outlives gRPC's use of the call.
  StreamCall(const prediction::TransportEnvironment& environment,
             grpc::CallbackServerContext* context, SendWatch* sends,
             Options options, Take take);

  // Begins to read. Called once.
  void Start();

  // Tells the client once that the server drains, ends a stream that is idle
  // for too long or not allowed any more. To be called again and again, by none
  // of gRPC's threads.
  void Tick(bool draining);

  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final;

  const security::Caller& caller() const { return options_.rights.caller; }
  // For Take().
  void SetMaxInFlight(int max_in_flight) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a request of this id is not answered yet.
  bool IsInFlight(absl::string_view id) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts and logs a message that did not become a prediction. Returns what is
  // to be answered.
  absl::Status Record(const absl::Status& error) const;

 private:
  struct Item {
    std::unique_ptr<StreamItem> item;
    int64_t bytes = 0;  // The size of its message.
    bool done = false;
  };

  // Whether another message may be read.
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Puts in flight what was taken of a message of `bytes`, unless the stream
  // ends. Returns it if it is to be run.
  Item* Admit(absl::StatusOr<std::unique_ptr<StreamItem>>* taken, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The request has its answer. Any thread.
  void ItemDone(Item* item) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the item out of the stream.
  Item Remove(Item* item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes out the items whose answers will not be sent.
  std::vector<Item> RemoveUnsent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Unlocked, because it frees memory; only then is there room for others.
  void Destroy(std::vector<Item> items) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes in no more requests; the call ends so once nothing is in flight.
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the call at once: what is in flight is cancelled and not answered.
  void Abandon(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Does what there is to do: one thread at a time, unlocked while it does it,
  // because gRPC may call back at once. Every method that changes the state
  // ends with it.
  void Pump() ABSL_UNLOCK_FUNCTION(mu_);
  // The next thing to do, or none.
  absl::AnyInvocable<void()> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The item to be sent next; null if there is none.
  Item* NextAnswer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::AnyInvocable<void()> Write(const grpc::ByteBuffer& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const prediction::TransportEnvironment& env_;
  grpc::CallbackServerContext& context_;
  SendWatch& sends_;
  const Options options_;
  Take take_;

  grpc::ByteBuffer received_;  // Filled by the read in progress.

  absl::Mutex mu_;
  std::shared_ptr<StreamCall> self_ ABSL_GUARDED_BY(mu_);
  bool pumping_ ABSL_GUARDED_BY(mu_) = false;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  bool read_all_ ABSL_GUARDED_BY(mu_) = false;  // The client sends no more.
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  // What the call ends with once nothing is in flight, decided before the
  // client has ended its part.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  int max_in_flight_ ABSL_GUARDED_BY(mu_);
  enum class Notice { kNone, kDue, kSent };
  Notice notice_ ABSL_GUARDED_BY(mu_) = Notice::kNone;
  absl::Time idle_since_ ABSL_GUARDED_BY(mu_);

  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  // The messages of those in flight.
  int64_t message_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Those that are not destroyed yet, in the order that they came in.
  std::list<Item> items_ ABSL_GUARDED_BY(mu_);
  // In the order that they were done in.
  std::deque<Item*> done_ ABSL_GUARDED_BY(mu_);
  Item* sending_ ABSL_GUARDED_BY(mu_) = nullptr;
};

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

#endif  // SFMAMBA_SERVER_RPC_STREAM_STREAM_CALL_H_
