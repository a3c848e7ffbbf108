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

// One request of a stream and its answer. The answer counts as held memory
// until the item is destroyed, which happens once the answer is sent.
class StreamItem {
 public:
  virtual ~StreamItem() = default;

  // `serving` is the error to answer at once, or OK. Called once. `done` runs
  // exactly once, as the last act, and may destroy the item.
  void Run(const absl::Status& serving, absl::AnyInvocable<void()> done) {
    done_ = std::move(done);
    Begin(serving);
  }
  // Called at any time, by any thread, until `done` has run.
  virtual void Cancel() = 0;

  // The client's name for the request. It does not change.
  virtual const std::string& id() const = 0;
  // Whether the answer waits for the answers to earlier requests that are in
  // order too. It does not change.
  virtual bool in_order() const = 0;

  // The message to send, once `done` has run.
  const grpc::ByteBuffer& answer() const { return answer_; }
  // An error that ends the stream instead of the answer, or OK, once `done` has
  // run.
  const absl::Status& stream_error() const { return stream_error_; }

 protected:
  // Makes the answer, now or later, and then calls End().
  virtual void Begin(const absl::Status& serving) = 0;
  // Runs `done`, which may destroy the item.
  void End() { std::exchange(done_, nullptr)(); }

  grpc::ByteBuffer answer_;
  absl::Status stream_error_;

 private:
  absl::AnyInvocable<void()> done_;
};

// A call of many requests. Answers go as they are ready, or in the order of
// their requests if the requests ask for that. At most `max_in_flight` requests
// are between their arrival and the time that their answer is sent. More than
// kAlwaysInFlight are in flight only while their messages take less than
// kMostBytes. Otherwise the call reads no further message, and HTTP/2's flow
// control holds back a client that sends faster than it reads. One message is
// read and one is sent at a time. A function of the method interprets messages.
//
// Thread-safe. It owns itself from Start() on, until gRPC is done with it.
// Whoever holds a share may call its methods longer.
class StreamCall final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public std::enable_shared_from_this<StreamCall> {
 public:
  // How long nothing may be in flight before a stream is ended.
  static constexpr absl::Duration kMostIdle = absl::Minutes(10);
  // How long nothing may be in flight while the server drains.
  static constexpr absl::Duration kMostIdleDraining = absl::Seconds(1);

  static constexpr int kAlwaysInFlight = 64;
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

  struct Options {
    observability::Method method = {};  // Requests are counted as this.
    int max_in_flight = 1;              // At least 1.
    // Sent once the server drains. Nothing is sent if it is not valid.
    grpc::ByteBuffer draining_notice;
    // Returns the error that new requests are answered with, or OK.
    std::function<absl::Status()> serving;
    // Checked at each Tick(). The stream ends at once if it is not allowed.
    StreamRights rights;
  };

  // Takes a message of the client. Returns the request in it, null if it is
  // none, or the error that ends the stream. Called for one message at a time,
  // in the order of arrival.
  using Take = absl::AnyInvocable<absl::StatusOr<std::unique_ptr<StreamItem>>(
      StreamCall& stream, grpc::ByteBuffer* received)>;

  // All arguments outlive gRPC's use of the call.
  StreamCall(const prediction::TransportEnvironment& environment,
             grpc::CallbackServerContext* context, SendWatch* sends,
             Options options, Take take);

  // Begins to read. Called once.
  void Start();

  // Tells the client once that the server drains, and ends a stream that is
  // idle for too long or not allowed any more. Called again and again, by none
  // of gRPC's threads.
  void Tick(bool draining);

  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final;

  observability::Method method() const { return options_.method; }
  const security::Caller& caller() const { return options_.rights.caller; }
  // For Take().
  void SetMaxInFlight(int max_in_flight) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether a request with this id is not answered yet.
  bool IsInFlight(absl::string_view id) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts and logs a message that is no valid request. Returns the error to
  // answer.
  absl::Status Record(const absl::Status& error) const;

 private:
  struct Item {
    std::unique_ptr<StreamItem> item;
    int64_t bytes = 0;  // The size of its message.
    bool done = false;
  };

  // Whether another message may be read.
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Puts the request of a message of `bytes` in flight, unless the stream ends.
  // Returns the request if it must be run.
  Item* Admit(absl::StatusOr<std::unique_ptr<StreamItem>>* taken, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The request has its answer. Any thread.
  void ItemDone(Item* item) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes the item out of the stream.
  Item Remove(Item* item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the items out whose answers will not be sent.
  std::vector<Item> RemoveUnsent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Frees the items' memory, unlocked, and then makes room for others.
  void Destroy(std::vector<Item> items) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes no more requests. The call ends with `status` once nothing is in
  // flight.
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the call at once. Requests in flight are cancelled and not answered.
  void Abandon(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Takes all steps that are due, one thread at a time. The mutex is not held
  // during a step, because gRPC may call back at once. Every method that
  // changes the state ends with this.
  void Pump() ABSL_UNLOCK_FUNCTION(mu_);
  // Returns the next step, or null.
  absl::AnyInvocable<void()> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the item whose answer is sent next; null if there is none.
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
  // How the call ends once nothing is in flight. Set if that is decided before
  // the client has ended its part.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  int max_in_flight_ ABSL_GUARDED_BY(mu_);
  enum class Notice { kNone, kDue, kSent };
  Notice notice_ ABSL_GUARDED_BY(mu_) = Notice::kNone;
  absl::Time idle_since_ ABSL_GUARDED_BY(mu_);

  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  // The sizes of the messages in flight.
  int64_t message_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The items that are not destroyed yet, in the order of their arrival.
  std::list<Item> items_ ABSL_GUARDED_BY(mu_);
  // The items that are done and not sent, in the order of their ends.
  std::deque<Item*> done_ ABSL_GUARDED_BY(mu_);
  Item* sending_ ABSL_GUARDED_BY(mu_) = nullptr;
};

// The open streams of a service. Thread-safe.
class StreamSet {
 public:
  // Starts the stream, which leaves the set when it ends. Returns it, for gRPC.
  StreamCall* Start(const std::shared_ptr<StreamCall>& stream)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Calls Tick() of each stream. Called again and again, by none of gRPC's
  // threads.
  void Tick(bool draining) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::vector<std::weak_ptr<StreamCall>> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_STREAM_CALL_H_
