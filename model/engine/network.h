#ifndef SFMAMBA_MODEL_ENGINE_NETWORK_H_
#define SFMAMBA_MODEL_ENGINE_NETWORK_H_

#include <memory>
#include <vector>

#include "ATen/core/Tensor.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/backbones/backbone.h"
#include "model/config.h"
#include "model/heads/classification_head.h"
#include "model/heads/head.h"
#include "model/ops/image_batch.h"
#include "model/ops/implementation.h"
#include "model/vision_model.h"
#include "model/weights/state_dict.h"

namespace sfmamba::engine {

// A model's backbone and head, on the device of the tensors in `scope`.
// Immutable, so thread-safe.
class Network {
 public:
  Network(const model::ModelConfig& config,
          const weights::StateDict::Scope& scope,
          const ops::Implementation& implementation);

  // Returns INVALID_ARGUMENT, with the image's number, if `images` cannot run
  // in one batch. Also returns INVALID_ARGUMENT if `fold_rows` is not 0 and
  // does not divide the number of sequences.
  absl::Status Check(absl::Span<const model::ModelInput> images,
                     int fold_rows) const;

  // Returns one result for each image.
  std::vector<model::Result> Forward(
      const ops::ImageBatch& images, int64_t fold_rows,
      absl::Span<const heads::ImageInfo> infos) const {
    return head_->Forward(backbone_->Forward(images, fold_rows), infos);
  }

  // Returns whether the model is a classifier. A classifier's Forward() can
  // also be done in two steps. First, Answers() enqueues the network on a
  // device. After the caller has copied the answers to the CPU, ToResults()
  // converts them.
  bool classifies() const { return classifier_ != nullptr; }
  at::Tensor Answers(const ops::ImageBatch& images, int64_t fold_rows) const {
    return classifier_->Answers(backbone_->Forward(images, fold_rows));
  }
  std::vector<model::Result> ToResults(
      const at::Tensor& answers,
      absl::Span<const heads::ImageInfo> infos) const {
    return classifier_->ToResults(answers, infos);
  }

  // Returns Backbone::ImagesAtOnce().
  int64_t ImagesAtOnce() const { return backbone_->ImagesAtOnce(); }

  // Returns the number of sequences of `images` images in the first token
  // stage. Images have the size config.image_size. Vim has only one token
  // stage.
  int64_t Sequences(int images) const {
    return backbone_->Sequences(images, config_.image_size,
                                config_.image_size)[0];
  }

 private:
  const model::ModelConfig config_;
  const std::unique_ptr<backbones::Backbone> backbone_;
  const std::unique_ptr<heads::Head> head_;
  // The head, if it is a classifier.
  const heads::ClassificationHead* const classifier_;
};

// Returns the sizes and options of the images, which a head needs.
std::vector<heads::ImageInfo> ToInfos(
    absl::Span<const model::ModelInput> images);

}  // namespace sfmamba::engine

#endif  // SFMAMBA_MODEL_ENGINE_NETWORK_H_
