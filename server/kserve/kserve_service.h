#ifndef SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_
#define SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admin/model_changes.h"
#include "server/kserve/model_queries.h"
#include "server/kserve/repository_control.h"
#include "server/observability/metrics.h"
#include "server/observability/request_record.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/prediction_service.h"

namespace sfmamba::kserve {

// inference.GRPCInferenceService: the Open Inference Protocol, version 2, as an
// adapter of the prediction. docs/clients.md says how its clients ask. No
// handler blocks or lets an exception out. Thread-safe.
class KserveService final : public rpc::PredictionService {
 public:
  static constexpr char kName[] = "inference.GRPCInferenceService";
  // Most requests of a stream in flight; further ones wait on their way.
  static constexpr int kMaxInFlight = 64;

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

 private:
  using Reactor = rpc::Reactor;
  using RawCall = rpc::RawCall;

  Reactor* ServerLive(const RawCall& call);
  Reactor* ServerReady(const RawCall& call);
  Reactor* ServerMetadata(const RawCall& call);
  Reactor* ModelReady(const RawCall& call);
  Reactor* ModelInfer(const RawCall& call);
  rpc::StreamReactor* ModelStreamInfer(grpc::CallbackServerContext* context);

  template <typename Request, typename Response>
  using Query = absl::Status (ModelQueries::*)(
      const Request&, Response*, observability::RequestRecord*) const;
  template <typename Request>
  using Start = void (RepositoryControl::*)(const std::string& who,
                                            const Request&,
                                            RepositoryControl::Done);

  // Adds a method that asks about models.
  template <typename Request, typename Response>
  void AddQuery(const char* name, observability::Method method,
                Query<Request, Response> query);
  // Adds a method that loads or unloads a model, which `start` begins; it is
  // answered when that has ended.
  template <typename Response, typename Request>
  void AddChange(const char* name, observability::Method method,
                 Start<Request> start);
  // Answers a call that is not counted, if the caller may read.
  template <typename Response>
  Reactor* EndRead(const RawCall& call, const Response& message) const;

  const Options options_;
  const ModelQueries queries_;
  RepositoryControl control_;
};

}  // namespace sfmamba::kserve

#endif  // SFMAMBA_SERVER_KSERVE_KSERVE_SERVICE_H_
