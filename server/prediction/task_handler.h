#ifndef SFMAMBA_SERVER_PREDICTION_TASK_HANDLER_H_
#define SFMAMBA_SERVER_PREDICTION_TASK_HANDLER_H_

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "model/config.h"
#include "model/result.h"
#include "server/batching/batch_task.h"
#include "server/image/image_input.h"
#include "server/prediction/answer.h"
#include "server/prediction/request_validation.h"
#include "server/repository/model_directory.h"

namespace sfmamba::prediction {

// Encodes the model's result for one image as its answer, in short steps.
// Between steps the caller may do other work or drop the image.
//
// Thread-compatible. Different threads may run different steps.
class AnswerEncoder {
 public:
  virtual ~AnswerEncoder() = default;

  // Whether all steps are done.
  virtual bool done() const = 0;
  // Estimates how long one thread takes for the next step. A step takes at most
  // about 10 ms, unless a single mask takes longer. Call it only while not
  // done().
  virtual absl::Duration NextCost() const = 0;
  // Runs the next step. Call it only while not done(). INTERNAL if a mask or a
  // map cannot be encoded.
  virtual absl::Status EncodeNext() = 0;
  // The approximate size in bytes of what is encoded so far.
  virtual int64_t bytes() const = 0;
  // Returns the answer. Call it once, when done().
  virtual Answer Take() = 0;
};

// Collects the results of the parts of one image.
class PartCollector {
 public:
  virtual ~PartCollector() = default;

  // Takes the result of part `i`. Batch threads call it once for each part,
  // several at once. It must take only microseconds and must not block.
  virtual void Add(int i, model::Result result) = 0;

  // A collector may process results before all of them have arrived, so that it
  // need not store all. Only the parts before Wanted() may run. Only Advance()
  // raises Wanted().
  virtual int Wanted() const { return std::numeric_limits<int>::max(); }
  // Whether Advance() has work to do. Any thread may call it.
  virtual bool CanAdvance() const { return false; }
  // Advance() processes results for some milliseconds. AdvanceCost() estimates
  // how long that takes. Only one thread at a time may call Advance(),
  // AdvanceCost() and Wanted().
  virtual void Advance() {}
  virtual absl::Duration AdvanceCost() const { return absl::ZeroDuration(); }

  // Makes the encoder of the image's answer. Call it once, after all parts were
  // added and CanAdvance() is false. Returns at once, because the encoder does
  // the merging.
  virtual std::unique_ptr<AnswerEncoder> MakeEncoder(
      const image::PictureFrame& frame) = 0;
};

// The part of a prediction that depends on the task, for one request. `model`
// is the requested model and has this handler's task. Immutable. Any thread may
// call it.
class TaskHandler {
 public:
  virtual ~TaskHandler() = default;

  virtual model::VisionTask task() const = 0;

  // INVALID_ARGUMENT unless the parameters fit the model.
  virtual absl::Status CheckParams(
      const repository::ModelDirectory& model) const = 0;

  // Fills `image->parts` if the image is divided into several model inputs.
  // Otherwise leaves it empty. Called when all other facts are known.
  // INVALID_ARGUMENT if there would be more than `most` parts. The error's
  // field is relative to the image.
  virtual absl::Status Divide(const repository::ModelDirectory& /*model*/,
                              int /*most*/, ImageFacts* /*image*/) const {
    return absl::OkStatus();
  }
  // Makes the collector of an image with parts. The handler, `model` and
  // `image` must outlive it.
  virtual std::unique_ptr<PartCollector> MakeCollector(
      const repository::ModelDirectory& /*model*/,
      const ImageFacts& /*image*/) const {
    return nullptr;
  }

  // The approximate maximum memory of the model's result for an image, in
  // bytes. 0 if it is negligible.
  virtual int64_t ResultBytes(const repository::ModelDirectory& /*model*/,
                              const ImageFacts& /*image*/) const {
    return 0;
  }

  // The minimum size in bytes of the answer to an image, in any transport's
  // message. 0 if unknown.
  virtual int64_t LeastAnswerBytes(const repository::ModelDirectory& /*model*/,
                                   const ImageFacts& /*image*/) const {
    return 0;
  }

  // Estimates how long one thread takes to encode an answer, at most. It
  // assumes as many objects as the parameters allow. Zero if encoding takes
  // only microseconds.
  virtual absl::Duration LongestAnswer(
      const repository::ModelDirectory& /*model*/,
      const ImageFacts& /*image*/) const {
    return absl::ZeroDuration();
  }

  // Sets the task's options for the model from the request's parameters.
  virtual void FillTask(const repository::ModelDirectory& /*model*/,
                        batching::BatchTask* /*task*/) const {}

  // Makes the encoder of the model's result. Returns at once, because the
  // encoder does the filtering, sorting and encoding. The handler and `model`
  // must outlive the encoder.
  virtual std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const = 0;

  // Says what a caller can change to get a smaller response.
  virtual absl::string_view SmallerResponse() const = 0;
};

// Make the handler of each task. `include_logits` adds logits to the answer.
std::unique_ptr<const TaskHandler> MakeHandler(const v1::ClassifyParams& params,
                                               bool include_logits = false);
std::unique_ptr<const TaskHandler> MakeHandler(const v1::DetectParams& params);
std::unique_ptr<const TaskHandler> MakeHandler(const v1::SegmentParams& params);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TASK_HANDLER_H_
