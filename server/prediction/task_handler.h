#ifndef SFMAMBA_SERVER_PREDICTION_TASK_HANDLER_H_
#define SFMAMBA_SERVER_PREDICTION_TASK_HANDLER_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "model/result.h"
#include "server/batching/batch_task.h"
#include "server/image/image_input.h"
#include "server/prediction/answer_encoder.h"
#include "server/prediction/prediction_request.h"
#include "server/prediction/request_validation.h"
#include "server/repository/model_directory.h"

namespace sfmamba::prediction {

// The part of a prediction that differs between the tasks, for one request.
// `model` is the one that was asked, of this handler's task. Immutable; any
// thread may call it.
class TaskHandler {
 public:
  virtual ~TaskHandler() = default;

  virtual model::VisionTask task() const = 0;

  // INVALID_ARGUMENT unless the parameters fit the model.
  virtual absl::Status CheckParams(
      const repository::ModelDirectory& model) const = 0;

  // The memory that the model's result for an image may take, about, in bytes.
  virtual int64_t ResultBytes(const repository::ModelDirectory& model,
                              const ImageFacts& image) const = 0;

  // How long one thread is expected to encode the answer to an image at most:
  // if as much is found in it as the parameters allow.
  virtual absl::Duration LongestAnswer(const repository::ModelDirectory& model,
                                       const ImageFacts& image) const = 0;

  // Puts into the task what the parameters ask of the model.
  virtual void FillTask(const repository::ModelDirectory& model,
                        batching::BatchTask* task) const = 0;

  // Turns the model's result for an image into its answer: filters, sorts and
  // encodes. Returns at once; the work is done by the encoder, which this and
  // `model` outlive.
  virtual std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const = 0;

  // What a caller may change to get a smaller response.
  virtual absl::string_view SmallerResponse() const = 0;
};

// The handler of the task that `params` belong to.
std::unique_ptr<const TaskHandler> MakeTaskHandler(const TaskParams& params);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TASK_HANDLER_H_
