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

// A linear classifier on the embedding, a vector that is computed from the last
// map. By default the map is normalised and pooled. VMamba normalises each
// pixel. If ClassifierConfig has layers (the neck), they come before the
// pooling. MambaOut has more layers after the pooling. All except the neck's
// product is computed in fp32, whatever the backbone's type is.
class ClassificationHead : public Head {
 public:
  ClassificationHead(const model::ModelConfig& config,
                     const weights::StateDict::Scope& scope,
                     const ops::Implementation& implementation);

  std::vector<model::Result> Forward(
      const layers::Features& features,
      absl::Span<const ImageInfo> images) const override;
  const ClassificationHead* AsClassifier() const override { return this; }

  // The two steps of Forward(). Answers() returns the logits followed by the
  // embedding, fp32 [N, num_classes + embedding_width], on the features'
  // device.
  at::Tensor Answers(const layers::Features& features) const;
  // ToResults() converts answers that have been copied to contiguous memory of
  // the CPU. The options are those of `images`, one for each answer.
  std::vector<model::Result> ToResults(
      const at::Tensor& answers, absl::Span<const ImageInfo> images) const;

 private:
  // Returns the last map, after the neck or the LayerNorm if there is one.
  at::Tensor LastMap(const layers::Features& features) const;
  // Returns Answers() for a result of LastMap().
  at::Tensor AnswersOf(const at::Tensor& map) const;
  // Adds to `result` the heat map of the best class, among `classes` or among
  // all if `classes` is empty. `map` [C, H, W] is the image's part of
  // LastMap().
  void AddHeatMap(const at::Tensor& map, const std::vector<int>& classes,
                  model::Classification* result) const;

  int num_classes_;
  std::optional<layers::Convolution> neck_;    // Includes the norm before it.
  std::optional<layers::LayerNorm> map_norm_;  // VMamba's.
  std::unique_ptr<const ops::PoolingOp> pooling_;
  std::optional<MlpEmbedding> mlp_;  // After the pooling, if there is one.
  layers::Linear head_;
};

}  // namespace sfmamba::heads

#endif  // SFMAMBA_MODEL_HEADS_CLASSIFICATION_HEAD_H_
