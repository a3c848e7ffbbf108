#ifndef SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_
#define SFMAMBA_SERVER_PREDICTION_PREDICTION_REQUEST_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

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

namespace sfmamba::repository {
class ModelVersion;
}  // namespace sfmamba::repository

namespace sfmamba::prediction {

// A request in the words of no transport. Its views are of the transport's
// message, which lives until the writer's ReleaseRequest(). The fields mean
// what the fields of the same name in proto/sfmamba/v1/vision.proto mean.

struct HeatMapParams {
  enum class Encoding { kValues, kPng };
  std::optional<int32_t> class_id;  // Unset: the best of those that compete.
  Encoding encoding = Encoding::kValues;
};

struct ClassifyParams {
  enum class Score { kSoftmax, kLogit, kSigmoid };
  int top_k = 0;  // 0: 5, or all classes if there are fewer.
  float min_score = 0;
  Score score = Score::kSoftmax;
  bool include_embedding = false;
  // Logits of all classes are asked for; vision.proto has no such field.
  bool include_logits = false;
  std::vector<int32_t> class_filter;
  std::optional<HeatMapParams> heat_map;
};

struct Tiles {
  enum class Merge { kNms, kGreedyNmm };
  enum class Match { kIou, kIos };
  int width = 0, height = 0;  // 0: the model's input size.
  float overlap = 0.2f;
  bool without_picture = false;
  Merge merge = Merge::kNms;
  Match match = Match::kIou;
  float match_threshold = 0.5f;
  int max_tiles = 0;  // 0: the server's limit.
};

// Says how a classifier looks at what each detection's box shows.
struct CropParams {
  absl::string_view model;
  int top_k = 0;  // 0: 1.
  float min_score = 0;
  bool include_embedding = false;
  float margin = 0;  // Boxes grow by it at each side, in parts of their size.
};

struct DetectParams {
  enum class MaskEncoding { kNone, kCocoRle, kPngCrop };
  std::optional<float> score_threshold;
  std::optional<float> nms_iou_threshold;
  int max_detections = 0;  // 0: the model's own.
  std::vector<int32_t> class_filter;
  MaskEncoding mask_encoding = MaskEncoding::kNone;
  bool class_agnostic_nms = false;
  std::optional<Tiles> tiles;
  std::optional<CropParams> crops;
};

struct SlidingWindow {
  int width = 0, height = 0;       // 0: the model's short side.
  int stride_x = 0, stride_y = 0;  // 0: two thirds of the window's side.
};

struct SegmentParams {
  enum class Encoding { kPngIndex, kRlePerClass, kRawIndex };
  enum class OutputSize { kOriginal, kModel };
  Encoding encoding = Encoding::kPngIndex;
  OutputSize output_size = OutputSize::kOriginal;
  bool include_class_areas = false;
  std::vector<int32_t> class_filter;
  bool include_confidence_map = false;
  std::optional<SlidingWindow> slide;  // Unset: the picture is taken whole.
};

// The alternative says which task is asked for.
using TaskParams = std::variant<ClassifyParams, DetectParams, SegmentParams>;

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
