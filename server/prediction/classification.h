#ifndef SFMAMBA_SERVER_PREDICTION_CLASSIFICATION_H_
#define SFMAMBA_SERVER_PREDICTION_CLASSIFICATION_H_

#include <cstdint>
#include <memory>

#include "server/prediction/task_handler.h"

namespace sfmamba::prediction {

// Handles Classify requests.
class ClassificationHandler final : public TaskHandler {
 public:
  explicit ClassificationHandler(const ClassifyParams& params)
      : params_(params) {}

  model::VisionTask task() const override {
    return model::VisionTask::kClassification;
  }
  absl::Status CheckParams(
      const repository::ModelDirectory& model) const override;
  int64_t ResultBytes(const repository::ModelDirectory& model,
                      const ImageFacts& image) const override;
  absl::Duration LongestAnswer(const repository::ModelDirectory& model,
                               const ImageFacts& image) const override;
  void FillTask(const repository::ModelDirectory& model,
                batching::BatchTask* task) const override;
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const override;
  absl::string_view SmallerResponse() const override;

 private:
  const ClassifyParams params_;
};

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_CLASSIFICATION_H_
