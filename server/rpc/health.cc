#include "server/rpc/health.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/rpc/call.h"
#include "server/rpc/grpc_status.h"

namespace sfmamba::rpc {

using grpc::ByteBuffer;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

constexpr char kLiveness[] = "liveness";
constexpr size_t kMaxName = 256;

// Reads the requested service name. Returns INVALID_ARGUMENT if the message is
// malformed or the name is too long.
grpc::Status ReadName(const ByteBuffer& bytes, std::string* name) {
  HealthCheckRequest request;
  const absl::Status parsed = Parse(bytes, &request);
  if (!parsed.ok()) return ToGrpcStatus(parsed);
  *name = request.service();
  if (name->size() <= kMaxName) return grpc::Status::OK;
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                      absl::StrCat("service: got ", name->size(),
                                   " bytes, expected at most ", kMaxName));
}

void Write(HealthCheckResponse::ServingStatus status, ByteBuffer* bytes) {
  HealthCheckResponse response;
  response.set_status(status);
  Serialize(response, bytes);
}

grpc::Status NoSuchService(const std::string& name) {
  return grpc::Status(
      grpc::StatusCode::NOT_FOUND,
      absl::StrCat("service: got \"", name, "\", expected none, \"", kLiveness,
                   "\", or a service or a model of this server"));
}

}  // namespace

// The stream of one Watch call. The service's mu_ guards the fields. Only one
// write is in progress at a time. If the status changes several times during a
// write, only the latest status is written afterwards.
class HealthService::Watcher final
    : public grpc::ServerWriteReactor<ByteBuffer> {
 public:
  Watcher(HealthService* service, grpc::CallbackServerContext* context,
          std::string name)
      : service_(*service),
        context_(*context),
        client_(ClientOf(service->gate_, *context)),
        name_(std::move(name)) {}

  const std::string& client() const { return client_; }
  const std::string& name() const { return name_; }

  // Checks that the caller holds the service's mu_. After this call, the
  // compiler's thread-safety analysis assumes that mu_ is held.
  void AssertLocked() const ABSL_ASSERT_EXCLUSIVE_LOCK(service_.mu_) {
    service_.mu_.AssertHeld();
  }

  void Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    const ServingStatus status = service_.StatusOf(name_);
    if (writing_ || finished_ || status == sent_) return;
    Write(status, &response_);
    sent_ = status;
    writing_ = true;
    StartWrite(&response_);
  }

  void End(const grpc::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (finished_) return;
    if (writing_) {
      end_after_write_ = status;
      return;
    }
    finished_ = true;
    Finish(status);
  }

  // Ends this watch because there are too many watches. If a write is pending,
  // the client may have stopped reading, so the call is cancelled.
  void GiveWay() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_.mu_) {
    if (writing_) context_.TryCancel();
    End(grpc::Status(
        grpc::StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat("got more than ", service_.max_watches_,
                     " watches, as max_health_watches is, and most of them "
                     "from this client: its oldest gives way")));
  }

  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&service_.mu_);
    writing_ = false;
    if (!ok) {
      End(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher has gone"));
      return;
    }
    Update();
    if (!writing_ && end_after_write_.has_value()) End(*end_after_write_);
  }

  void OnCancel() override {
    absl::MutexLock lock(&service_.mu_);
    End(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher has gone"));
  }

  void OnDone() override {
    {
      absl::MutexLock lock(&service_.mu_);
      AssertLocked();
      service_.Forget(this);
    }
    delete this;
  }

 private:
  HealthService& service_;
  grpc::CallbackServerContext& context_;
  const std::string client_;
  const std::string name_;
  ByteBuffer response_ ABSL_GUARDED_BY(service_.mu_);
  std::optional<ServingStatus> sent_ ABSL_GUARDED_BY(service_.mu_);
  bool writing_ ABSL_GUARDED_BY(service_.mu_) = false;
  std::optional<grpc::Status> end_after_write_ ABSL_GUARDED_BY(service_.mu_);
  bool finished_ ABSL_GUARDED_BY(service_.mu_) = false;
};

HealthService::HealthService(std::function<bool()> alive, int max_watches,
                             const security::Gate* gate)
    : alive_(std::move(alive)), max_watches_(max_watches), gate_(gate) {}

void HealthService::SetServing(const std::string& name, bool serving) {
  absl::MutexLock lock(&mu_);
  SetLocked(name, serving);
}

bool HealthService::IsServing(const std::string& name) const {
  absl::MutexLock lock(&mu_);
  const auto found = serving_.find(name);
  return found != serving_.end() && found->second && !failed_;
}

void HealthService::SetNoneServing() {
  absl::MutexLock lock(&mu_);
  for (const auto& [name, serving] : serving_) SetLocked(name, false);
}

void HealthService::Fail() {
  absl::MutexLock lock(&mu_);
  failed_ = true;
  TellAll();
}

void HealthService::UpdateLiveness() {
  absl::MutexLock lock(&mu_);
  TellWatchersOf(kLiveness);
}

void HealthService::EndWatches() {
  absl::MutexLock lock(&mu_);
  ended_ = true;
  TellAll();
}

void HealthService::SetLocked(const std::string& name, bool serving) {
  serving_[name] = serving;
  TellWatchersOf(name);
}

void HealthService::TellWatchersOf(const std::string& name) {
  for (const auto& [client, watchers] : watchers_) {
    for (Watcher* watcher : watchers) {
      if (watcher->name() == name) Tell(watcher);
    }
  }
}

void HealthService::TellAll() {
  for (const auto& [client, watchers] : watchers_) {
    for (Watcher* watcher : watchers) Tell(watcher);
  }
}

HealthService::ServingStatus HealthService::StatusOf(
    const std::string& name) const {
  const auto status = [this](bool serving) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return serving && !failed_ ? HealthCheckResponse::SERVING
                               : HealthCheckResponse::NOT_SERVING;
  };
  if (name == kLiveness) return status(alive_());
  const auto found = serving_.find(name);
  return found == serving_.end() ? HealthCheckResponse::SERVICE_UNKNOWN
                                 : status(found->second);
}

grpc::ServerUnaryReactor* HealthService::Check(
    grpc::CallbackServerContext* context, const ByteBuffer* request,
    ByteBuffer* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  std::string name;
  const grpc::Status named = ReadName(*request, &name);
  if (!named.ok()) {
    reactor->Finish(named);
    return reactor;
  }
  absl::MutexLock lock(&mu_);
  const ServingStatus status = StatusOf(name);
  Write(status, response);
  reactor->Finish(status == HealthCheckResponse::SERVICE_UNKNOWN
                      ? NoSuchService(name)
                      : grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<ByteBuffer>* HealthService::Watch(
    grpc::CallbackServerContext* context, const ByteBuffer* request) {
  std::string name;
  const grpc::Status named = ReadName(*request, &name);
  if (!named.ok()) {
    return new Refused<grpc::ServerWriteReactor<ByteBuffer>>(named);
  }
  absl::MutexLock lock(&mu_);
  auto* watcher = new Watcher(this, context, std::move(name));
  watchers_[watcher->client()].push_back(watcher);
  if (++watches_ > max_watches_) EndOneBeside(*watcher);
  Tell(watcher);
  return watcher;
}

void HealthService::EndOneBeside(const Watcher& newest) {
  auto most = watchers_.find(newest.client());
  for (auto it = watchers_.begin(); it != watchers_.end(); ++it) {
    if (it->second.size() > most->second.size()) most = it;
  }
  Watcher* const oldest = most->second.front();
  Forget(oldest);
  oldest->AssertLocked();
  oldest->GiveWay();
}

void HealthService::Forget(Watcher* watcher) {
  const auto found = watchers_.find(watcher->client());
  if (found == watchers_.end()) return;
  std::deque<Watcher*>& watchers = found->second;
  const auto at = std::find(watchers.begin(), watchers.end(), watcher);
  if (at == watchers.end()) return;
  watchers.erase(at);
  --watches_;
  if (watchers.empty()) watchers_.erase(found);
}

void HealthService::Tell(Watcher* watcher) {
  watcher->AssertLocked();
  if (ended_) {
    watcher->End(
        grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopping"));
  } else {
    watcher->Update();
  }
}

}  // namespace sfmamba::rpc
