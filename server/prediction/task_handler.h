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

// Converts the model's result for one image to the encoded answer, in short
// steps. Between two steps, the caller may do other work or drop the image.
//
// Thread-compatible. Different threads may run different steps.
class AnswerEncoder {
 public:
  virtual ~AnswerEncoder() = default;

  // Returns true if all steps are done.
  virtual bool done() const = 0;
  // Estimates how long one thread takes for the next step. A step takes at most
  // about 10 ms, unless a single mask takes longer. Must not be called if
  // done() is true.
  virtual absl::Duration NextCost() const = 0;
  // Runs the next step. Must not be called if done() is true. Returns INTERNAL
  // if a mask or a map cannot be encoded.
  virtual absl::Status EncodeNext() = 0;
  // Returns the approximate size in bytes of the data encoded so far.
  virtual int64_t bytes() const = 0;
  // Returns the answer. May be called only once, after done() becomes true.
  virtual Answer Take() = 0;
};

// Collects the results of the parts of one image, for example of its tiles.
class PartCollector {
 public:
  virtual ~PartCollector() = default;

  // Adds the result of part `i`. Called once for each part, possibly by several
  // batch threads at the same time. An implementation must take only
  // microseconds and must not block.
  virtual void Add(int i, model::Result result) = 0;

  // Returns how many parts may be submitted now, counted from the first part. A
  // collector may limit this number, so that not all results are in memory at
  // the same time. Only Advance() raises the number.
  virtual int Wanted() const { return std::numeric_limits<int>::max(); }
  // Returns true if Advance() has work to do. Any thread may call this method.
  virtual bool CanAdvance() const { return false; }
  // Advance() processes results for a few milliseconds. AdvanceCost() estimates
  // this time. Only one thread at a time may call Advance(), AdvanceCost() and
  // Wanted().
  virtual void Advance() {}
  virtual absl::Duration AdvanceCost() const { return absl::ZeroDuration(); }

  // Creates the encoder of the image's answer. May be called only once, when
  // the results of all parts were added and CanAdvance() is false. Returns
  // quickly, because the results are merged later, in the encoder's steps.
  virtual std::unique_ptr<AnswerEncoder> MakeEncoder(
      const image::PictureFrame& frame) = 0;
};

// The operations of a prediction that depend on the task (classification,
// detection or segmentation). A handler serves one request. Its methods receive
// the requested model as `model`. The task of this model must be the handler's
// task. A handler is immutable, and any thread may call its methods.
class TaskHandler {
 public:
  virtual ~TaskHandler() = default;

  virtual model::VisionTask task() const = 0;

  // Returns INVALID_ARGUMENT unless the parameters fit the model.
  virtual absl::Status CheckParams(
      const repository::ModelDirectory& model) const = 0;

  // If the request divides the image into several model inputs, fills
  // `image->parts`. Otherwise, leaves `image->parts` empty. Called when the
  // other fields of `image` are set. Returns INVALID_ARGUMENT if there would be
  // more than `most` parts. The error contains no field, because the caller
  // adds the path of the image.
  virtual absl::Status Divide(const repository::ModelDirectory& /*model*/,
                              int /*most*/, ImageFacts* /*image*/) const {
    return absl::OkStatus();
  }
  // Creates the collector of an image with parts. The handler, `model` and
  // `image` must outlive the collector.
  virtual std::unique_ptr<PartCollector> MakeCollector(
      const repository::ModelDirectory& /*model*/,
      const ImageFacts& /*image*/) const {
    return nullptr;
  }

  // Returns the approximate maximum size of the model's result for an image, in
  // bytes. Returns 0 if the size is negligible.
  virtual int64_t ResultBytes(const repository::ModelDirectory& /*model*/,
                              const ImageFacts& /*image*/) const {
    return 0;
  }

  // Returns a lower bound for the size of the answer to one image, in bytes.
  // This bound holds for all transports. Returns 0 if the size cannot be
  // estimated.
  virtual int64_t LeastAnswerBytes(const repository::ModelDirectory& /*model*/,
                                   const ImageFacts& /*image*/) const {
    return 0;
  }

  // Estimates the maximum time that one thread needs to encode an answer.
  // Assumes that the model finds as many objects as the parameters allow.
  // Returns zero if encoding takes only microseconds.
  virtual absl::Duration LongestAnswer(
      const repository::ModelDirectory& /*model*/,
      const ImageFacts& /*image*/) const {
    return absl::ZeroDuration();
  }

  // Sets task->options, the options for the model, from the request's
  // parameters. `task` is the image's entry in the batch queue. Called when
  // task->image is set.
  virtual void FillTask(const repository::ModelDirectory& /*model*/,
                        batching::BatchTask* /*task*/) const {}

  // Creates the encoder of the model's result. Returns quickly, because
  // filtering, sorting and encoding happen later, in the encoder's steps. The
  // handler and `model` must outlive the encoder.
  virtual std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const = 0;

  // Returns a text that tells the caller how to get a smaller response.
  virtual absl::string_view SmallerResponse() const = 0;
};

// These functions create the handler of the task to which the parameters
// belong. If `include_logits` is true, the answer contains the logits of all
// classes.
std::unique_ptr<const TaskHandler> MakeHandler(const v1::ClassifyParams& params,
                                               bool include_logits = false);
std::unique_ptr<const TaskHandler> MakeHandler(const v1::DetectParams& params);
std::unique_ptr<const TaskHandler> MakeHandler(const v1::SegmentParams& params);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TASK_HANDLER_H_
