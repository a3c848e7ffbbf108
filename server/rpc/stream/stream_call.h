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

// A request of a stream and its response. The item is destroyed after the
// response is sent. Until then, the response counts as used memory.
class StreamItem {
 public:
  virtual ~StreamItem() = default;

  // Starts to answer the request. If `serving` is an error, this error is the
  // response. Run() must be called only once. The item's last action is to call
  // `done`, which may destroy the item.
  void Run(const absl::Status& serving, absl::AnyInvocable<void()> done) {
    done_ = std::move(done);
    Begin(serving);
  }
  // Cancels the request. May be called at any time by any thread before `done`
  // is called.
  virtual void Cancel() = 0;

  // Returns the id that the client gave to the request. Always returns the same
  // id.
  virtual const std::string& id() const = 0;
  // If this method returns true, the response is sent only after the responses
  // of all earlier items whose in_order() is also true. The returned value
  // never changes.
  virtual bool in_order() const = 0;

  // Returns the message to send. Valid after `done` was called.
  const grpc::ByteBuffer& answer() const { return answer_; }
  // Returns OK or the error that ends the stream. If the error is set, answer()
  // is not sent. Valid after `done` was called.
  const absl::Status& stream_error() const { return stream_error_; }

 protected:
  // Starts computing the response. Must call End() when the response is ready.
  virtual void Begin(const absl::Status& serving) = 0;
  // Calls `done`, which may destroy the item.
  void End() { std::exchange(done_, nullptr)(); }

  grpc::ByteBuffer answer_;
  absl::Status stream_error_;

 private:
  absl::AnyInvocable<void()> done_;
};

// Runs a bidirectional streaming call that carries many requests. A `Take`
// function interprets the messages of the client. The call reads one message
// and writes one message at a time.
//
// By default, a response is sent as soon as it is ready. A request may demand
// that its response is sent in request order.
//
// A request is in flight from its arrival until its response is sent. The call
// stops reading if `max_in_flight` requests are in flight. The call also stops
// reading if at least kAlwaysInFlight requests are in flight and their messages
// have at least kMostBytes in total. HTTP/2 flow control then slows the client
// down.
//
// Thread-safe. The call keeps itself alive from Start() until gRPC calls
// OnDone(). Owners of a shared_ptr may call methods after OnDone().
class StreamCall final
    : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public std::enable_shared_from_this<StreamCall> {
 public:
  // The maximum time for which a stream may be idle. A stream is idle while no
  // request is in flight.
  static constexpr absl::Duration kMostIdle = absl::Minutes(10);
  // The maximum idle time of a stream while the server drains.
  static constexpr absl::Duration kMostIdleDraining = absl::Seconds(1);

  static constexpr int kAlwaysInFlight = 64;
  static constexpr int64_t kMostBytes = int64_t{64} << 20;

  struct Options {
    // Requests are counted under this method.
    observability::Method method = {};
    // The initial limit for requests in flight, at least 1.
    int max_in_flight = 1;
    // The message that is sent when the server starts to drain. If the buffer
    // is not valid, no message is sent.
    grpc::ByteBuffer draining_notice;
    // Returns OK, or the error with which new requests are answered.
    std::function<absl::Status()> serving;
    // Each Tick() checks these rights. If the check fails, the requests in
    // flight are cancelled and the stream ends.
    StreamRights rights;
  };

  // Interprets a message of the client. Returns the request that the message
  // contains. Returns null if the message is not a request, for example if the
  // message sets options. If a returned status is an error, the stream ends
  // with this error. Called for one message at a time, in order of arrival.
  using Take = absl::AnyInvocable<absl::StatusOr<std::unique_ptr<StreamItem>>(
      StreamCall& stream, grpc::ByteBuffer* received)>;

  // `environment`, `context` and `sends` must exist at least until gRPC calls
  // OnDone().
  StreamCall(const prediction::TransportEnvironment& environment,
             grpc::CallbackServerContext* context, SendWatch* sends,
             Options options, Take take);

  // Starts reading. Must be called once.
  void Start();

  // If the server drains, sends the drain notice once. Ends the stream if it
  // was idle for too long or if its caller no longer has the required scope.
  // Must be called periodically, by a thread that does not belong to gRPC.
  void Tick(bool draining);

  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final;
  void OnCancel() final;
  void OnDone() final;

  observability::Method method() const { return options_.method; }
  const security::Caller& caller() const { return options_.rights.caller; }
  // Sets the maximum number of requests in flight. May be called only by the
  // Take function.
  void SetMaxInFlight(int max_in_flight) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if a request with this id is in flight. Ignores a request
  // whose response is already being sent.
  bool IsInFlight(absl::string_view id) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts and logs an invalid message. Returns the error for the client.
  absl::Status Record(const absl::Status& error) const;

 private:
  struct Item {
    std::unique_ptr<StreamItem> item;
    int64_t bytes = 0;  // The size of the request message.
    bool done = false;
  };

  // Returns true if the limits allow the call to read another message.
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // If `taken` is an error, ends the stream. Otherwise adds the request in
  // `taken` to items_, unless the stream is ending. `bytes` is the size of the
  // request's message. Returns the item to run, or null.
  Item* Admit(absl::StatusOr<std::unique_ptr<StreamItem>>* taken, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Records that the response of `item` is ready. May be called by any thread.
  void ItemDone(Item* item) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes an item from items_.
  Item Remove(Item* item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes the items whose responses are ready but will not be sent, and
  // returns them. Called after Abandon().
  std::vector<Item> RemoveUnsent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Destroys the items without holding the mutex. Afterwards, the items no
  // longer count as in flight, so other requests can be read.
  void Destroy(std::vector<Item> items) ABSL_LOCKS_EXCLUDED(mu_);
  // Stops reading requests. The call ends with `status` when no request is in
  // flight.
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Stops reading requests, cancels the requests in flight and sends no more
  // responses. The call ends when no request is in flight. It ends with
  // `status`, unless another status was set earlier.
  void Abandon(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Executes all pending steps, such as the next read and the next write. If a
  // call of Pump() is already running, the running call executes the steps, and
  // the new call returns immediately. Pump() must be called after each change
  // of the state.
  //
  // The caller must hold mu_. Pump() releases mu_, and mu_ is not held when
  // Pump() returns. mu_ is also not held during a step, because gRPC may call a
  // method of this object during the step.
  void Pump() ABSL_UNLOCK_FUNCTION(mu_);
  // Returns the next step to execute, or null.
  absl::AnyInvocable<void()> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the item whose response is sent next, or null.
  Item* NextAnswer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::AnyInvocable<void()> Write(const grpc::ByteBuffer& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const prediction::TransportEnvironment& env_;
  grpc::CallbackServerContext& context_;
  SendWatch& sends_;
  const Options options_;
  Take take_;

  // gRPC stores the message of the current read here.
  grpc::ByteBuffer received_;

  absl::Mutex mu_;
  std::shared_ptr<StreamCall> self_ ABSL_GUARDED_BY(mu_);
  bool pumping_ ABSL_GUARDED_BY(mu_) = false;
  bool reading_ ABSL_GUARDED_BY(mu_) = false;
  // True if the client sends no more messages.
  bool read_all_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  // The status with which the call ends when no request is in flight. If this
  // member is empty, the call ends with OK after the client has closed its
  // side.
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
  int max_in_flight_ ABSL_GUARDED_BY(mu_);
  enum class Notice { kNone, kDue, kSent };
  Notice notice_ ABSL_GUARDED_BY(mu_) = Notice::kNone;
  absl::Time idle_since_ ABSL_GUARDED_BY(mu_);

  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  // The total size in bytes of the requests in flight.
  int64_t message_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The items whose responses were not sent yet, in order of arrival.
  std::list<Item> items_ ABSL_GUARDED_BY(mu_);
  // The items whose responses are ready but not sent yet, in order of
  // completion.
  std::deque<Item*> done_ ABSL_GUARDED_BY(mu_);
  Item* sending_ ABSL_GUARDED_BY(mu_) = nullptr;
};

// The open streams of a service. The set does not own them. Thread-safe.
class StreamSet {
 public:
  // Adds the stream to the set and starts it. The set forgets the stream after
  // the stream has ended. Returns the stream's reactor for gRPC.
  StreamCall* Start(const std::shared_ptr<StreamCall>& stream)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Calls Tick() of each stream. Must be called periodically, by a thread that
  // does not belong to gRPC.
  void Tick(bool draining) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  std::vector<std::weak_ptr<StreamCall>> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_STREAM_STREAM_CALL_H_
