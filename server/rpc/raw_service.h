#ifndef SFMAMBA_SERVER_RPC_RAW_SERVICE_H_
#define SFMAMBA_SERVER_RPC_RAW_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/admin/model_changes.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"
#include "server/security/gate.h"

namespace sfmamba::rpc {

using Reactor = grpc::ServerUnaryReactor;

// A call of a method with one request and one response, as gRPC hands it over.
struct RawCall {
  grpc::CallbackServerContext* context;
  const grpc::ByteBuffer* request;
  grpc::ByteBuffer* response;
};

// Who makes a call, for the log, if they may administer: see CheckCaller().
absl::StatusOr<std::string> AdministratorOf(
    const security::Gate* gate, const grpc::CallbackServerContext& context);

// A call that is answered when a change of the server has ended, or as soon as
// its caller goes.
//
// Thread-safe. It lives until gRPC and whoever makes the change are done.
class ChangeCall final : public grpc::ServerUnaryReactor {
 public:
  // `metrics` and `log` outlive the call.
  static std::shared_ptr<ChangeCall> New(observability::Method method,
                                         const RawCall& call,
                                         observability::Metrics* metrics,
                                         observability::Logger* log);

  // Ends the call, unless it has ended: then nothing is done. If `status` is
  // OK, `write` fills the response before.
  void End(
      const absl::Status& status, absl::FunctionRef<void()> write = [] {});

  // Whether End() or OnCancel() was called.
  bool has_ended() const { return ended_.load(); }

  void OnCancel() override;
  void OnDone() override;

 private:
  explicit ChangeCall(grpc::CallbackServerContext* context)
      : context_(context) {}

  grpc::CallbackServerContext* const context_;  // Until the call has ended.
  std::optional<observability::RequestRecord> record_;
  std::atomic<bool> ended_{false};
  std::shared_ptr<ChangeCall> self_;  // Until gRPC is done with it.
};

// Ends a call at once.
Reactor* End(const RawCall& call, const grpc::Status& status);

// A service whose methods get the bytes of their messages, so that who may not
// call is refused before they are parsed, and malformed ones are answered and
// counted like others. A method that is not added is UNIMPLEMENTED.
//
// Thread-safe once its methods are added.
class RawService : public grpc::Service {
 public:
  // From now on CheckServing() fails.
  void StartDraining() { draining_.store(true); }

 protected:
  // What a request for `Request` must pass before it is parsed. May write its
  // client or its model into the record.
  using Check = absl::FunctionRef<absl::Status(observability::RequestRecord*)>;
  template <typename Request, typename Response>
  using Answering = absl::FunctionRef<absl::Status(
      const Request&, Response*, observability::RequestRecord*)>;
  // Begins a change that `who` asks for, and calls `Done` when it has ended.
  template <typename Request>
  using Changing = absl::FunctionRef<void(
      const std::string& who, const Request&, admin::ModelChanges::Done)>;

  // `name` is the service's full one. The rest outlives the service.
  RawService(const char* name, observability::Metrics* metrics,
             observability::Logger* log)
      : name_(name), metrics_(*metrics), log_(*log) {}

  // Has `handle` serve the method `name`.
  template <typename Service>
  void Add(const char* name, Reactor* (Service::*handle)(const RawCall&)) {
    Add(name, [this, handle](const RawCall& call) {
      return (static_cast<Service*>(this)->*handle)(call);
    });
  }
  void Add(const char* name, std::function<Reactor*(const RawCall&)> handle);
  void AddStream(
      const char* name,
      std::function<StreamReactor*(grpc::CallbackServerContext*)> open);
  // Has `handle` or `open` serve the method at "/<service>/<method>".
  void AddPath(std::string path,
               std::function<Reactor*(const RawCall&)> handle);
  void AddStreamPath(
      std::string path,
      std::function<StreamReactor*(grpc::CallbackServerContext*)> open);

  // UNAVAILABLE, DRAINING, while draining.
  absl::Status CheckServing() const;
  observability::RequestRecord Record(
      observability::Method method, int64_t message_bytes,
      const grpc::CallbackServerContext& context) const;
  // Counts and logs a call about no model that is refused; returns how it ends.
  grpc::Status Refuse(observability::Method method, int64_t message_bytes,
                      const absl::Status& status,
                      grpc::CallbackServerContext* context) const;

  // A call that is answered now: `answer` fills the response, or says what is
  // wrong with the request.
  template <typename Request, typename Response>
  Reactor* Answer(observability::Method method, const RawCall& call,
                  Check check, Answering<Request, Response> answer) const {
    auto record = Record(method, call.request->Length(), *call.context);
    Request asked;
    Response message;
    absl::Status status = check(&record);
    if (status.ok()) status = Parse(*call.request, &asked);
    if (status.ok()) status = answer(asked, &message, &record);
    if (status.ok()) Serialize(message, call.response);
    return End(call, EndCall(record.Finish(status), call.context));
  }

  // A call that is answered once what it changes has changed: `start` begins
  // that unless `who` is an error, and `write` fills the response then. That
  // may be after the service is gone, but not after what `write` uses.
  template <typename Request, typename Response>
  Reactor* Change(observability::Method method, const RawCall& call,
                  const absl::StatusOr<std::string>& who,
                  Changing<Request> start,
                  std::function<void(const Request&, Response*)> write) const {
    const auto change = ChangeCall::New(method, call, &metrics_, &log_);
    Request asked;
    absl::Status status = who.status();
    if (status.ok()) status = CheckServing();
    if (status.ok()) status = Parse(*call.request, &asked);
    if (!status.ok()) {
      change->End(status);
      return change.get();
    }
    const auto done = [change, asked, bytes = call.response,
                       write = std::move(write)](const absl::Status& status) {
      change->End(status, [&] {
        Response message;
        write(asked, &message);
        Serialize(message, bytes);
      });
    };
    start(*who, asked, {done, [change] { return change->has_ended(); }});
    return change.get();
  }

 private:
  void AddHandler(std::string path, grpc::internal::RpcMethod::RpcType type,
                  grpc::internal::MethodHandler* handler);

  const std::string name_;
  observability::Metrics& metrics_;
  observability::Logger& log_;
  std::atomic<bool> draining_{false};
  std::deque<std::string> paths_;  // Methods' paths; gRPC points to them.
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_RAW_SERVICE_H_
