#ifndef SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_
#define SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "server/prediction/prediction.h"
#include "server/security/gate.h"

namespace sfmamba::prediction {

// What transports work with: what their predictions need, and what they decide
// before there is a prediction. All of it outlives them.
struct TransportEnvironment : PredictionEnvironment {
  // Who may call; null: everybody.
  const security::Gate* gate = nullptr;
  bool encoded_models = false;  // Whether KServe has "{id}_encoded" too.
  // Told of each message of images or tensors that gRPC hands over, and of its
  // peer. Must not block.
  std::function<void(const std::string& peer, int64_t bytes)> message_came =
      [](const std::string&, int64_t) {};
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_
