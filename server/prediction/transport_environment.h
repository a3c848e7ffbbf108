#ifndef SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_
#define SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/prediction/prediction.h"
#include "server/security/gate.h"

namespace sfmamba::prediction {

// What transports work with: what their predictions need, and what they decide
// before there is a prediction. All of it outlives them.
struct TransportEnvironment : PredictionEnvironment {
  // Who may call; null: everybody.
  const security::Gate* gate = nullptr;
  bool encoded_models = false;  // Whether KServe has "{id}_encoded" too.
  // A unary gRPC call ends with the status. Returns the call's load report for
  // load balancers, serialized. Empty: calls carry none. Must not block.
  std::function<std::string(const absl::Status&)> load_report;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_
