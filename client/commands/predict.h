#ifndef SFMAMBA_CLIENT_COMMANDS_PREDICT_H_
#define SFMAMBA_CLIENT_COMMANDS_PREDICT_H_

#include <utility>

#include "absl/time/time.h"
#include "client/rpc/vision_client.h"

namespace sfmamba::client {

// Overloads of one function for VisionClient's three predictions, for code that
// works with all of them.

inline CallHandle Predict(VisionClient& client,
                          const v1::ClassifyRequest& request,
                          absl::Duration timeout,
                          VisionClient::Done<v1::ClassifyResponse> done) {
  return client.Classify(request, timeout, std::move(done));
}

inline CallHandle Predict(VisionClient& client,
                          const v1::DetectRequest& request,
                          absl::Duration timeout,
                          VisionClient::Done<v1::DetectResponse> done) {
  return client.Detect(request, timeout, std::move(done));
}

inline CallHandle Predict(VisionClient& client,
                          const v1::SegmentRequest& request,
                          absl::Duration timeout,
                          VisionClient::Done<v1::SegmentResponse> done) {
  return client.Segment(request, timeout, std::move(done));
}

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PREDICT_H_
