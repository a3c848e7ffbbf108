#ifndef SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_
#define SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_

#include <cstdint>
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

// A request, whatever transport it came by. Its views are of the transport's
// message, which lives until the writer's ReleaseRequest(). The fields mean
// what the fields of the same name in proto/sfmamba/v1/vision.proto mean.

// The alternative says which task is asked for. Enumerators are known ones.
using TaskParams =
    std::variant<v1::ClassifyParams, v1::DetectParams, v1::SegmentParams>;

struct RequestOptions {
  server::Priority priority = server::Priority::kNormal;
  std::optional<absl::Duration> max_queue_wait;  // Positive.
  bool include_timing = false;
  bool allow_partial_results = false;
  std::optional<image::ResizeMode> resize;  // Unset: the model's own.
  bool validate_only = false;
};

// The call that a request came by, over any transport.
struct CallInfo {
  std::string peer;
  security::Caller caller;  // Without a name it is the peer's address.
  std::string traceparent;  // The W3C header; may be empty.
  std::string tracestate;   // The same; several headers are joined.
  absl::string_view system = "grpc";  // Or "http": what it came over.
  absl::Time deadline = absl::InfiniteFuture();  // In SteadyNow()'s time.
};

struct PredictionRequest {
  observability::Method method = observability::Method::kClassify;
  CallInfo call;
  absl::string_view model;
  // Found already by `model`; null: not yet. It may be unloaded meanwhile.
  std::shared_ptr<repository::ModelVersion> version;
  absl::string_view request_id;
  TaskParams params;
  // Whether the logits of all classes are asked for of a classifier.
  bool include_logits = false;
  RequestOptions options;
  // The number of images, and a translation of the i-th, whose error has a
  // field relative to the image. No image is translated before the number is
  // known to be allowed, so that a message of millions of empty images costs
  // nothing.
  int images = 0;
  absl::AnyInvocable<absl::StatusOr<image::ImageSource>(int i) const> image;
  // An error if the transport could not translate the parameters or options.
  absl::Status malformed;

  int64_t message_bytes = 0;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_
