#ifndef SFMAMBA_MODEL_HEADS_CLASSIFICATION_HEAD_H_
#define SFMAMBA_MODEL_HEADS_CLASSIFICATION_HEAD_H_

#include <memory>
#include <optional>
#include <vector>

#include "model/heads/head.h"
#include "model/heads/mlp_embedding.h"
#include "model/layers/convolution.h"
#include "model/layers/layer_norm.h"
#include "model/layers/linear.h"
#include "model/ops/implementation.h"

namespace sfmamba::heads {

// A linear classifier. It reads the embedding, a vector that is computed from
// the last map. By default, the embedding is the mean of the map's pixels after
// a BatchNorm. VMamba applies a LayerNorm to each pixel instead. If
// ClassifierConfig has layers (the neck), they run before the mean. MambaOut
// has more layers after the mean. All of this is computed in fp32, except the
// neck. The neck is a 1x1 convolution, which multiplies in the same type as the
// 1x1 convolutions of the backbone.
class ClassificationHead : public Head {
 public:
  ClassificationHead(const model::ModelConfig& config,
                     const weights::StateDict::Scope& scope,
                     const ops::Implementation& implementation);

  std::vector<model::Result> Forward(
      const layers::Features& features,
      absl::Span<const ImageInfo> images) const override;
  const ClassificationHead* AsClassifier() const override { return this; }

  // Answers() and ToResults() are the two steps of Forward(). Answers() returns
  // the logits followed by the embedding, fp32 [N, num_classes +
  // embedding_width], on the features' device.
  at::Tensor Answers(const layers::Features& features) const;
  // Converts answers that were copied to contiguous memory of the CPU. `images`
  // contains the options, one element for each answer.
  std::vector<model::Result> ToResults(
      const at::Tensor& answers, absl::Span<const ImageInfo> images) const;

 private:
  // Returns the last map. Applies the neck or the LayerNorm first, if there is
  // one.
  at::Tensor LastMap(const layers::Features& features) const;
  // Computes Answers() from a result of LastMap().
  at::Tensor AnswersOf(const at::Tensor& map) const;
  // Adds a heat map of one class to `result`. This is the best class of
  // `classes`, or of all classes if `classes` is empty. `map` [C, H, W] is this
  // image's part of LastMap().
  void AddHeatMap(const at::Tensor& map, const std::vector<int>& classes,
                  model::Classification* result) const;

  int num_classes_;
  std::optional<layers::Convolution> neck_;    // Includes the BatchNorm.
  std::optional<layers::LayerNorm> map_norm_;  // Only for VMamba.
  std::unique_ptr<const ops::PoolingOp> pooling_;
  std::optional<MlpEmbedding> mlp_;  // Only for MambaOut.
  layers::Linear head_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_CLASSIFICATION_HEAD_H_
