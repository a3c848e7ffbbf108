#ifndef SFMAMBA_SERVER_RPC_ADMIN_SERVICE_H_
#define SFMAMBA_SERVER_RPC_ADMIN_SERVICE_H_

#include "server/observability/log.h"
#include "server/observability/metrics.h"
#include "server/repository/model_repository.h"
#include "sfmamba/v1/admin.grpc.pb.h"

namespace sfmamba::rpc {

// sfmamba.v1.AdminService. No handler blocks. Thread-safe.
class AdminService final : public v1::AdminService::CallbackService {
 public:
  // They outlive the service.
  AdminService(const repository::ModelRepository& repository,
               observability::Metrics* metrics, observability::Logger* log)
      : repository_(repository), metrics_(*metrics), log_(*log) {}

  grpc::ServerUnaryReactor* GetBatchProfile(
      grpc::CallbackServerContext* context,
      const v1::GetBatchProfileRequest* request,
      v1::BatchProfile* response) override;

 private:
  const repository::ModelRepository& repository_;
  observability::Metrics& metrics_;
  observability::Logger& log_;
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_ADMIN_SERVICE_H_
