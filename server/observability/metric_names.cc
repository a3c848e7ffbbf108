#include "server/observability/metric_names.h"

namespace sfmamba::observability {

absl::string_view MethodName(Method method) {
  static constexpr absl::string_view kNames[kMethodCount] = {
      "Classify",
      "Detect",
      "Segment",
      "StreamPredict",
      "GetModel",
      "ListModels",
      "LoadModel",
      "UnloadModel",
      "SetVersionLabel",
      "GetServerInfo",
      "GetBatchProfile",
      "UpdateRuntimeSettings",
      "ModelInfer",
      "ModelStreamInfer",
      "ModelMetadata",
      "ModelConfig",
      "ModelStatistics",
      "RepositoryIndex",
      "RepositoryModelLoad",
      "RepositoryModelUnload"};
  return kNames[static_cast<int>(method)];
}

absl::string_view StageName(Stage stage) {
  static constexpr absl::string_view kNames[kStageCount] = {
      "decode", "preprocess", "queue", "inference", "postprocess"};
  return kNames[static_cast<int>(stage)];
}

absl::string_view ItemOutcomeName(ItemOutcome outcome) {
  static constexpr absl::string_view kNames[kItemOutcomeCount] = {
      "ok", "rejected", "expired", "cancelled", "error"};
  return kNames[static_cast<int>(outcome)];
}

absl::string_view ModelStateName(ModelState state) {
  static constexpr absl::string_view kNames[kModelStateCount] = {
      "LOADING", "READY", "UNLOADING", "UNAVAILABLE"};
  return kNames[static_cast<int>(state)];
}

absl::string_view PriorityName(server::Priority priority) {
  static constexpr absl::string_view kNames[server::kPriorityCount] = {
      "high", "normal", "low"};
  return kNames[static_cast<int>(priority)];
}

}  // namespace sfmamba::observability
