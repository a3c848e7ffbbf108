#ifndef SFMAMBA_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_
#define SFMAMBA_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/admin/model_changes.h"
#include "server/admin/runtime_settings.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/repository/model_repository.h"
#include "server/rpc/raw_service.h"
#include "server/security/gate.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rpc {

// sfmamba.v1.AdminService. No handler blocks or lets an exception out. Each
// call that changes something leaves a line in the log. Thread-safe.
class AdminService final : public RawService {
 public:
  static constexpr char kName[] = "sfmamba.v1.AdminService";

  // What the service works with, all of which outlives it.
  struct Environment {
    repository::ModelRepository& repository;
    admin::ModelChanges& changes;
    admin::RuntimeSettings& settings;
    const server::MemoryBudget& memory;
    const security::Gate& gate;
    observability::Metrics& metrics;
    observability::Logger& log;
    observability::BuildInfo build;
    std::string model_control;  // See ServerConfig.
    absl::Time start_time = absl::Now();
  };

  explicit AdminService(Environment environment);

 private:
  Reactor* LoadModel(const RawCall& call);
  Reactor* UnloadModel(const RawCall& call);
  Reactor* SetVersionLabel(const RawCall& call);
  Reactor* GetServerInfo(const RawCall& call);
  Reactor* GetBatchProfile(const RawCall& call);
  Reactor* UpdateRuntimeSettings(const RawCall& call);

  template <typename Request, typename Response>
  using AnsweringTo =
      absl::FunctionRef<absl::Status(const std::string& who, const Request&,
                                     Response*, observability::RequestRecord*)>;
  // RawService::Answer() for callers that may administer.
  template <typename Request, typename Response>
  Reactor* AnswerAdmin(observability::Method method, const RawCall& call,
                       AnsweringTo<Request, Response> answer) const;
  // RawService::Change(), with the versions of the model that the request names
  // as its answer.
  template <typename Request, typename Response>
  Reactor* ChangeModel(observability::Method method, const RawCall& call,
                       Changing<Request> start) const;

  const Environment env_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_
