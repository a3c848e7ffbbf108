#ifndef SFMAMBA_SERVER_RPC_METHOD_SERVICE_H_
#define SFMAMBA_SERVER_RPC_METHOD_SERVICE_H_

#include "absl/time/time.h"
#include "server/call/method_table.h"
#include "server/rpc/prediction_service.h"
#include "server/rpc/raw_service.h"
#include "server/rpc/send_watch.h"

namespace sfmamba::rpc {

// Has the table answer a call of `method`, one of its own. Returns gRPC's side
// of the call, which deletes itself once the response is sent. All that is
// passed outlives the call.
Reactor* Serve(const call::MethodTable& methods, const call::Method& method,
               const RawCall& raw, SendWatch* sends);

// Serves the methods of a table over gRPC. A stream is served as StreamPredict.
// Thread-safe.
class MethodService final : public PredictionService {
 public:
  // `methods` outlives the service. `send_timeout`: see PredictionService.
  MethodService(const call::MethodTable& methods, absl::Duration send_timeout);
};

}  // namespace sfmamba::rpc

#endif  // SFMAMBA_SERVER_RPC_METHOD_SERVICE_H_
