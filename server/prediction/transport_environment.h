#ifndef SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_
#define SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/prediction/prediction.h"
#include "server/security/gate.h"

namespace sfmamba::prediction {

// The services and settings that transports use. Some of them are needed before
// a prediction exists. All referenced objects must outlive the transports.
struct TransportEnvironment : PredictionEnvironment {
  // Decides which calls a caller may make. If null, every caller may make every
  // call.
  const security::Gate* gate = nullptr;
  // If true, each model has the second name "{id}_encoded" in the KServe API.
  // Under this name, the model's metadata describes the input as encoded files
  // (for example JPEG) and not as a tensor. See kserve::PublishedModel.
  bool encoded_models = false;
  // Called with the status of each finished unary gRPC call. Returns the call's
  // serialized load report for load balancers. Must not block. If empty, calls
  // carry no report.
  std::function<std::string(const absl::Status&)> load_report;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TRANSPORT_ENVIRONMENT_H_
