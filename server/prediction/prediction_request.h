#ifndef SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_
#define SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/image/image.h"
#include "server/image/image_source.h"
#include "server/observability/metrics.h"
#include "server/security/caller.h"
#include "server/shares/priority.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::repository {
class ModelVersion;
}  // namespace sfmamba::repository

namespace sfmamba::prediction {

// This file defines a request in a form that does not depend on the transport.
// The string views of a request point into the transport's message. The views
// are valid until ResponseWriter::ReleaseRequest() is called. Each field has
// the same meaning as the field of this name in
// proto/sfmamba/v1/vision.proto.

// The parameters of a request. Their type selects the task. If they contain an
// unknown enum value, PredictionRequest::malformed is an error.
using TaskParams =
    std::variant<v1::ClassifyParams, v1::DetectParams, v1::SegmentParams>;

struct RequestOptions {
  server::Priority priority = server::Priority::kNormal;
  std::optional<absl::Duration> max_queue_wait;  // Must be positive.
  bool include_timing = false;
  bool allow_partial_results = false;
  // If this mode is not set, the model's resize mode is used.
  std::optional<image::ResizeMode> resize;
  bool validate_only = false;
};

// The call that carried the request, over any transport.
struct CallInfo {
  std::string peer;
  // The caller. If `caller.name` is empty, the address in `peer` identifies the
  // caller.
  security::Caller caller;
  std::string traceparent;            // The W3C header, or empty.
  std::string tracestate;             // All W3C headers, joined by commas.
  absl::string_view system = "grpc";  // The transport: "grpc" or "http".
  // The caller's deadline, by base::SteadyNow(). InfiniteFuture() means that
  // the caller sent none.
  absl::Time deadline = absl::InfiniteFuture();
  // The maximum size of the response in bytes that the transport allows.
  // PredictionEnvironment::max_response_bytes also limits the response, and the
  // smaller of the two limits applies.
  int64_t max_response_bytes = std::numeric_limits<int64_t>::max();
};

struct PredictionRequest {
  observability::Method method = observability::Method::kClassify;
  CallInfo call;
  absl::string_view model;
  // The model version that the transport has found. If it is null, the
  // prediction finds the version. The version may be unloaded at any time, but
  // its model stays in memory as long as this pointer exists.
  std::shared_ptr<repository::ModelVersion> version;
  absl::string_view request_id;
  TaskParams params;
  // If true, a classifier's answer includes the logits of all classes.
  bool include_logits = false;
  RequestOptions options;
  // `images` is the number of images in the message. `image(i)` converts image
  // `i`. If the conversion fails, the error names a field relative to the
  // image, for example ".encoded". Images are converted only after their number
  // has been checked. A message with millions of empty images is therefore
  // refused without converting them.
  int images = 0;
  absl::AnyInvocable<absl::StatusOr<image::ImageSource>(int i) const> image;
  // An error if the transport could not convert the parameters or options.
  absl::Status malformed;

  int64_t message_bytes = 0;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_
