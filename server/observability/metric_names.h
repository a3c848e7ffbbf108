#ifndef SFMAMBA_SERVER_OBSERVABILITY_METRIC_NAMES_H_
#define SFMAMBA_SERVER_OBSERVABILITY_METRIC_NAMES_H_

#include "absl/strings/string_view.h"
#include "server/shares/priority.h"

namespace sfmamba::observability {

enum class Method {
  kClassify,
  kDetect,
  kSegment,
  kStreamPredict,
  kGetModel,
  kListModels,
  // Methods of AdminService.
  kLoadModel,
  kUnloadModel,
  kSetVersionLabel,
  kGetServerInfo,
  kGetBatchProfile,
  kUpdateRuntimeSettings,
  // Methods of the Open Inference Protocol.
  kModelInfer,
  kModelStreamInfer,
  kModelMetadata,
  kModelConfig,
  kModelStatistics,
  kRepositoryIndex,
  kRepositoryModelLoad,
  kRepositoryModelUnload,
};
inline constexpr int kMethodCount = 20;

enum class Stage { kDecode, kPreprocess, kQueue, kInference, kPostprocess };
inline constexpr int kStageCount = 5;

enum class ItemOutcome { kOk, kRejected, kExpired, kCancelled, kError };
inline constexpr int kItemOutcomeCount = 5;

enum class ModelState { kLoading, kReady, kUnloading, kUnavailable };
inline constexpr int kModelStateCount = 4;

// These functions return the value of a label, for example "Classify",
// "decode", "ok" or "READY".
absl::string_view MethodName(Method method);
absl::string_view StageName(Stage stage);
absl::string_view ItemOutcomeName(ItemOutcome outcome);
absl::string_view ModelStateName(ModelState state);
// Returns the value of a label, for example "high".
absl::string_view PriorityName(server::Priority priority);

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_METRIC_NAMES_H_
