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

// Turns the model's result for one image into its answer, in pieces between
// which the caller may do other work or give the image up.
//
// Thread-compatible; the pieces may be encoded by different threads.
class AnswerEncoder {
 public:
  virtual ~AnswerEncoder() = default;

  // Whether all pieces are encoded.
  virtual bool done() const = 0;
  // How long one thread is expected to work on the next piece, about 10 ms at
  // most but for a mask that takes longer by itself. Only while not done().
  virtual absl::Duration NextCost() const = 0;
  // Encodes the next piece. Only while not done(). INTERNAL if a mask or a map
  // cannot be encoded.
  virtual absl::Status EncodeNext() = 0;
  // The bytes of what has been encoded so far, about.
  virtual int64_t bytes() const = 0;
  // The answer; once, when done().
  virtual Answer Take() = 0;
};

// Collects the results of the parts that an image was divided into.
class PartCollector {
 public:
  virtual ~PartCollector() = default;

  // Takes the result of the image's i-th part. Called once for each part, by
  // batch threads, several at once: it must take microseconds and not block.
  virtual void Add(int i, model::Result result) = 0;

  // A collector may work on results while others are still to come, so that it
  // need not keep all of them. The parts before Wanted() may be run; they
  // become more by Advance() only.
  virtual int Wanted() const { return std::numeric_limits<int>::max(); }
  // Whether Advance() would find work. Any thread may ask.
  virtual bool CanAdvance() const { return false; }
  // Works for some milliseconds. One thread at a time calls this, Wanted() and
  // AdvanceCost(), which says how long the work is expected to take.
  virtual void Advance() {}
  virtual absl::Duration AdvanceCost() const { return absl::ZeroDuration(); }

  // Turns what was collected into the image's answer, once, when all parts were
  // added and Advance() would find no work. Returns at once: to merge them is
  // the encoder's work.
  virtual std::unique_ptr<AnswerEncoder> MakeEncoder(
      const image::PictureFrame& frame) = 0;
};

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

  // Fills `image->parts` if each part of the image becomes an input of its own,
  // as PartOf() describes one; left empty, the image is one input. Called when
  // the rest of the facts is known. INVALID_ARGUMENT, with a field relative to
  // the image, if there would be more than `most` parts.
  virtual absl::Status Divide(const repository::ModelDirectory& /*model*/,
                              int /*most*/, ImageFacts* /*image*/) const {
    return absl::OkStatus();
  }
  // What collects the parts' results of an image with parts. This, `model` and
  // `image` outlive it.
  virtual std::unique_ptr<PartCollector> MakeCollector(
      const repository::ModelDirectory& /*model*/,
      const ImageFacts& /*image*/) const {
    return nullptr;
  }

  // The memory that the model's result for an image may take, about, in bytes;
  // 0 if it is too little to count.
  virtual int64_t ResultBytes(const repository::ModelDirectory& /*model*/,
                              const ImageFacts& /*image*/) const {
    return 0;
  }

  // The fewest bytes of the answer to an image in any transport's message; 0 if
  // that is not known.
  virtual int64_t LeastAnswerBytes(const repository::ModelDirectory& /*model*/,
                                   const ImageFacts& /*image*/) const {
    return 0;
  }

  // How long one thread is expected to encode the answer to an image at most:
  // if as much is found in it as the parameters allow. Zero: microseconds.
  virtual absl::Duration LongestAnswer(
      const repository::ModelDirectory& /*model*/,
      const ImageFacts& /*image*/) const {
    return absl::ZeroDuration();
  }

  // Puts into the task what the parameters ask of the model.
  virtual void FillTask(const repository::ModelDirectory& /*model*/,
                        batching::BatchTask* /*task*/) const {}

  // Turns the model's result for an image into its answer: filters, sorts and
  // encodes. Returns at once; the work is done by the encoder, which this and
  // `model` outlive.
  virtual std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const = 0;

  // What a caller may change to get a smaller response.
  virtual absl::string_view SmallerResponse() const = 0;
};

// The handler of each task. `include_logits`: the answer has them.
std::unique_ptr<const TaskHandler> MakeHandler(const v1::ClassifyParams& params,
                                               bool include_logits = false);
std::unique_ptr<const TaskHandler> MakeHandler(const v1::DetectParams& params);
std::unique_ptr<const TaskHandler> MakeHandler(const v1::SegmentParams& params);

}  // namespace sfmamba::prediction

#endif  // SFMAMBA_SERVER_PREDICTION_TASK_HANDLER_H_
