#ifndef SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_
#define SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/admin/model_changes.h"
#include "server/kserve/kserve_methods.h"
#include "server/kserve/model_queries.h"
#include "server/kserve/repository_control.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/send_watch.h"
#include "server/rpc/stream/stream_set.h"

namespace sfmamba::kserve {

// inference.GRPCInferenceService: the Open Inference Protocol, version 2, as an
// adapter of the prediction. docs/clients.md says how its clients ask. No
// handler blocks or lets an exception out. Thread-safe.
class KserveService final : public KserveMethods {
 public:
  struct Options {
    std::string version;  // The server's.
    // Whether every model makes progress, and whether the server is SERVING.
    // Both must be quick and thread-safe.
    std::function<bool()> live;
    std::function<bool()> ready;
    absl::Duration send_timeout = absl::InfiniteDuration();  // VisionService's.
    // What loads and unloads models, which outlives the service; null: nothing
    // does.
    admin::ModelChanges* changes = nullptr;
  };

  KserveService(prediction::TransportEnvironment environment, Options options);

  // See VisionService's methods of these names.
  void StartDraining();
  void EndUnreadCalls();

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelConfig(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ModelStatistics(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryIndex(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryModelLoad(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RepositoryModelUnload(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryStatus(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryRegister(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* SystemSharedMemoryUnregister(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryStatus(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryRegister(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CudaSharedMemoryUnregister(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ModelStreamInfer(
      grpc::CallbackServerContext* context) override;

 private:
  // A call that asks about models: `answer` fills the response, or says what is
  // wrong with the request.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Answer(
      observability::Method method, grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
      absl::FunctionRef<absl::Status(const Request&, Response*,
                                     observability::RequestRecord*)>
          answer);
  // A call that loads or unloads a model, which `start` begins; it is answered
  // when that has ended.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Change(
      observability::Method method, grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request, grpc::ByteBuffer* response,
      absl::FunctionRef<void(const admin::Caller&, const Request&,
                             RepositoryControl::Done)>
          start);
  // A call that is refused with `status` whatever it says.
  grpc::ServerUnaryReactor* Refuse(observability::Method method,
                                   grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   const absl::Status& status);
  // Whether the caller may read.
  absl::Status CheckReader(const grpc::CallbackServerContext& context) const;
  // Answers a call that is not counted, if the caller may read.
  template <typename Response>
  grpc::ServerUnaryReactor* EndRead(grpc::CallbackServerContext* context,
                                    const Response& message,
                                    grpc::ByteBuffer* response) const;
  // UNAVAILABLE while draining.
  absl::Status CheckServing() const;
  observability::RequestRecord Record(
      observability::Method method, const grpc::ByteBuffer& request,
      const grpc::CallbackServerContext& context) const;

  const prediction::TransportEnvironment env_;
  const Options options_;
  const ModelQueries queries_;
  RepositoryControl control_;
  rpc::SendWatch sends_;
  rpc::StreamSet streams_;
  std::atomic<bool> draining_{false};
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_
