#ifndef SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_
#define SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_

#include "server/prediction/prediction.h"
#include "server/security/gate.h"

namespace sfmamba::prediction {

// What transports work with: what their predictions need, and what they decide
// before there is a prediction. All of it outlives them.
struct TransportEnvironment : PredictionEnvironment {
  // Who may call; null: everybody.
  const security::Gate* gate = nullptr;
  bool encoded_models = false;  // Whether KServe has "{id}_encoded" too.
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_
