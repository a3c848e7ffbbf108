#ifndef SFMAMBA_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_
#define SFMAMBA_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/admin/model_changes.h"
#include "server/admin/runtime_settings.h"
#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/repository/model_repository.h"
#include "server/shares/memory_budget.h"
#include "sfmamba/v1/admin.grpc.pb.h"

namespace sfmamba::rpc {

// Methods get the bytes of their messages, so that who may not administer is
// refused before they are parsed, and malformed ones are counted.
using AdminMethods = v1::AdminService::WithRawCallbackMethod_LoadModel<
    v1::AdminService::WithRawCallbackMethod_UnloadModel<
        v1::AdminService::WithRawCallbackMethod_SetVersionLabel<
            v1::AdminService::WithRawCallbackMethod_SetCanaryShare<
                v1::AdminService::WithRawCallbackMethod_GetServerInfo<
                    v1::AdminService::WithRawCallbackMethod_GetBatchProfile<
                        v1::AdminService::
                            WithRawCallbackMethod_UpdateRuntimeSettings<
                                v1::AdminService::Service>>>>>>>;

// sfmamba.v1.AdminService. No handler blocks or lets an exception out. Each
// call that changes something leaves a line in the log. Thread-safe.
class AdminService final : public AdminMethods {
 public:
  // What the service works with, all of which outlives it.
  struct Environment {
    repository::ModelRepository& repository;
    admin::ModelChanges& changes;
    admin::RuntimeSettings& settings;
    const server::MemoryBudget& memory;
    observability::Metrics& metrics;
    observability::Logger& log;
    observability::BuildInfo build;
    std::string model_control;  // See ServerConfig.
    absl::Time start_time = absl::Now();
  };

  explicit AdminService(Environment environment)
      : env_(std::move(environment)) {}

  // From now on changes are answered UNAVAILABLE with reason DRAINING.
  void StartDraining() { draining_.store(true); }

  grpc::ServerUnaryReactor* LoadModel(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* UnloadModel(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SetVersionLabel(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SetCanaryShare(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetBatchProfile(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* UpdateRuntimeSettings(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;

 private:
  // A call that is answered now: `answer` fills the response, or says what is
  // wrong with the request.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(
      observability::Method method, grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
      absl::FunctionRef<absl::Status(const Request&, Response*,
                                     observability::RequestRecord*)>
          answer);
  // A call that is answered once the version or versions that it names have
  // come or gone: `start` begins that, unless the request is refused.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Change(
      observability::Method method, grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
      absl::FunctionRef<void(const Request&, const admin::Caller&,
                             admin::ModelChanges::Done)>
          start);
  // UNAVAILABLE while draining.
  absl::Status CheckServing() const;

  const Environment env_;
  std::atomic<bool> draining_{false};
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_ADMIN_ADMIN_SERVICE_H_
