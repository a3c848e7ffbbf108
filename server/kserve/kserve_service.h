#ifndef SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_
#define SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/admin/model_changes.h"
#include "server/kserve/kserve_methods.h"
#include "server/kserve/model_queries.h"
#include "server/kserve/repository_control.h"
#include "server/kserve/shared_memory.h"
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
  using Reactor = grpc::ServerUnaryReactor;
  using Context = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;

  struct Options {
    std::string version;  // The server's.
    // Whether every model makes progress, and whether the server is SERVING.
    // Both must be quick and thread-safe.
    std::function<bool()> live;
    std::function<bool()> ready;
    absl::Duration send_timeout = absl::InfiniteDuration();  // VisionService's.
    bool system_shared_memory = false;  // Whether clients may register any.
    // What loads and unloads models, which outlives the service; null: nothing
    // does.
    admin::ModelChanges* changes = nullptr;
  };

  KserveService(prediction::TransportEnvironment environment, Options options);

  // See VisionService's methods of these names.
  void StartDraining();
  void EndUnreadCalls();

  Reactor* ServerLive(Context* context, const Bytes* request,
                      Bytes* response) override;
  Reactor* ServerReady(Context* context, const Bytes* request,
                       Bytes* response) override;
  Reactor* ModelReady(Context* context, const Bytes* request,
                      Bytes* response) override;
  Reactor* ServerMetadata(Context* context, const Bytes* request,
                          Bytes* response) override;
  Reactor* ModelMetadata(Context* context, const Bytes* request,
                         Bytes* response) override;
  Reactor* ModelInfer(Context* context, const Bytes* request,
                      Bytes* response) override;
  Reactor* ModelConfig(Context* context, const Bytes* request,
                       Bytes* response) override;
  Reactor* ModelStatistics(Context* context, const Bytes* request,
                           Bytes* response) override;
  Reactor* RepositoryIndex(Context* context, const Bytes* request,
                           Bytes* response) override;
  Reactor* RepositoryModelLoad(Context* context, const Bytes* request,
                               Bytes* response) override;
  Reactor* RepositoryModelUnload(Context* context, const Bytes* request,
                                 Bytes* response) override;
  Reactor* SystemSharedMemoryStatus(Context* context, const Bytes* request,
                                    Bytes* response) override;
  Reactor* SystemSharedMemoryRegister(Context* context, const Bytes* request,
                                      Bytes* response) override;
  Reactor* SystemSharedMemoryUnregister(Context* context, const Bytes* request,
                                        Bytes* response) override;
  Reactor* CudaSharedMemoryStatus(Context* context, const Bytes* request,
                                  Bytes* response) override;
  Reactor* CudaSharedMemoryRegister(Context* context, const Bytes* request,
                                    Bytes* response) override;
  Reactor* CudaSharedMemoryUnregister(Context* context, const Bytes* request,
                                      Bytes* response) override;
  grpc::ServerBidiReactor<Bytes, Bytes>* ModelStreamInfer(
      Context* context) override;

 private:
  template <typename Request, typename Response>
  using Query = absl::Status (ModelQueries::*)(
      const Request&, Response*, observability::RequestRecord*) const;
  template <typename Request>
  using Start = void (RepositoryControl::*)(const admin::Caller&,
                                            const Request&,
                                            RepositoryControl::Done);

  // A call that asks about models.
  template <typename Request, typename Response>
  Reactor* Answer(observability::Method method, Context* context,
                  const Bytes* request, Bytes* response,
                  Query<Request, Response> query);
  // A call that loads or unloads a model, which `start` begins; it is answered
  // when that has ended.
  template <typename Response, typename Request>
  Reactor* Change(observability::Method method, Context* context,
                  const Bytes* request, Bytes* response, Start<Request> start);
  // A call that is refused with `status` whatever it says.
  Reactor* Refuse(observability::Method method, Context* context,
                  const Bytes* request, const absl::Status& status);
  // A call about regions of shared memory: use(request, response) handles it.
  template <typename Request, typename Response, typename Use>
  Reactor* UseSharedMemory(Context* context, const Bytes* request,
                           Bytes* response, Use use);
  // Where tensors may be; null: in messages only.
  const SharedMemory* memory() const {
    return options_.system_shared_memory ? &memory_ : nullptr;
  }
  // Whether the caller may read.
  absl::Status CheckReader(const Context& context) const;
  // Answers a call that is not counted, if the caller may read.
  template <typename Response>
  Reactor* EndRead(Context* context, const Response& message,
                   Bytes* response) const;
  // UNAVAILABLE while draining.
  absl::Status CheckServing() const;
  observability::RequestRecord Record(observability::Method method,
                                      const Bytes& request,
                                      const Context& context) const;

  const prediction::TransportEnvironment env_;
  const Options options_;
  const ModelQueries queries_;
  RepositoryControl control_;
  SharedMemory memory_;
  rpc::SendWatch sends_;
  rpc::StreamSet streams_;
  std::atomic<bool> draining_{false};
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_
