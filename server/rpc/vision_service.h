#ifndef SFMAMBA_SERVER_RPC_VISION_SERVICE_H_
#define SFMAMBA_SERVER_RPC_VISION_SERVICE_H_

#include "absl/time/time.h"
#include "server/prediction/transport_environment.h"
#include "server/rpc/prediction_service.h"

namespace sfmamba::rpc {

// sfmamba.v1.VisionService. No handler blocks or lets an exception out.
// Thread-safe.
class VisionService final : public PredictionService {
 public:
  static constexpr char kName[] = "sfmamba.v1.VisionService";

  // `send_timeout`: see PredictionService.
  explicit VisionService(
      prediction::TransportEnvironment environment,
      absl::Duration send_timeout = absl::InfiniteDuration());

 private:
  template <typename Asked, observability::Method kMethod>
  Reactor* Ask(const RawCall& call);
  StreamReactor* StreamPredict(grpc::CallbackServerContext* context);
  Reactor* GetModel(const RawCall& call);
  Reactor* ListModels(const RawCall& call);
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_VISION_SERVICE_H_
