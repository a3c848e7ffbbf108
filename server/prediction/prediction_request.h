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

// A request in a form that does not depend on the transport. The string views
// of a request point into the transport's message. They are valid until
// ResponseWriter::ReleaseRequest() is called. Fields have the meaning of the
// fields with the same name in proto/sfmamba/v1/vision.proto.

// The parameters of a request. Their type selects the task. If they contain an
// unknown enum value, PredictionRequest::malformed is an error.
using TaskParams =
    std::variant<v1::ClassifyParams, v1::DetectParams, v1::SegmentParams>;

struct RequestOptions {
  server::Priority priority = server::Priority::kNormal;
  std::optional<absl::Duration> max_queue_wait;  // Positive.
  bool include_timing = false;
  bool allow_partial_results = false;
  std::optional<image::ResizeMode> resize;  // The model's default if not set.
  bool validate_only = false;
};

// The call that carried the request, over any transport.
struct CallInfo {
  std::string peer;
  security::Caller caller;            // Known by its address if it has no name.
  std::string traceparent;            // The W3C header, or empty.
  std::string tracestate;             // The joined W3C headers.
  absl::string_view system = "grpc";  // The transport: "grpc" or "http".
  absl::Time deadline = absl::InfiniteFuture();  // By base::SteadyNow().
  // The maximum size of the response in bytes that the transport allows. The
  // limit of PredictionEnvironment applies too.
  int64_t max_response_bytes = std::numeric_limits<int64_t>::max();
};

struct PredictionRequest {
  observability::Method method = observability::Method::kClassify;
  CallInfo call;
  absl::string_view model;
  // The model version if the transport has already found it, or null if not.
  // The version may be unloaded at any time.
  std::shared_ptr<repository::ModelVersion> version;
  absl::string_view request_id;
  TaskParams params;
  // If true, a classifier's answer includes the logits of all classes.
  bool include_logits = false;
  RequestOptions options;
  // `images` is the number of images in the message, and `image(i)` converts
  // one of them. The field of an error is relative to the image, for example
  // ".encoded". Images are converted only after their number has been checked.
  // A message with millions of empty images is therefore refused without
  // converting them.
  int images = 0;
  absl::AnyInvocable<absl::StatusOr<image::ImageSource>(int i) const> image;
  // An error if the transport could not convert the parameters or options.
  absl::Status malformed;

  int64_t message_bytes = 0;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_
