// What Classify requests ask for and get.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/btree_set.h"
#include "server/errors/reasons.h"
#include "server/prediction/heat_map_encoder.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/softmax.h"
#include "server/prediction/task_handler.h"

namespace sfmamba::prediction {
namespace {

constexpr int kDefaultTopK = 5;
constexpr absl::Duration kPerClass = absl::Nanoseconds(5);

bool WantsPng(const ClassifyParams& params) {
  return params.heat_map.has_value() &&
         params.heat_map->encoding == HeatMapParams::Encoding::kPng;
}

// Scores of all classes, in the scale that was asked for.
std::vector<float> Scores(const std::vector<float>& logits,
                          ClassifyParams::Score type) {
  std::vector<float> scores(logits.size());
  switch (type) {
    case ClassifyParams::Score::kLogit:
      return logits;
    case ClassifyParams::Score::kSigmoid:
      for (size_t i = 0; i < logits.size(); ++i) {
        scores[i] = 1 / (1 + std::exp(-static_cast<double>(logits[i])));
      }
      return scores;
    case ClassifyParams::Score::kSoftmax:
      return Softmax(logits);
  }
  return scores;
}

// Returns the `count` best of the classes that compete, the best first; all, if
// there are fewer. Classes of equal scores go by their ids.
std::vector<int> BestClasses(const std::vector<float>& scores,
                             const std::vector<int>& filter, int count) {
  std::vector<int> best;
  const auto before = [&scores](int a, int b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  // `best` is a heap with the worst of them in front. Ids rise, so that among
  // equal scores the first stay.
  const auto consider = [&](int id) {
    if (static_cast<int>(best.size()) == count) {
      if (scores[id] <= scores[best.front()]) return;
      std::pop_heap(best.begin(), best.end(), before);
      best.pop_back();
    }
    best.push_back(id);
    std::push_heap(best.begin(), best.end(), before);
  };
  if (filter.empty()) {
    for (int id = 0; id < static_cast<int>(scores.size()); ++id) consider(id);
  } else {
    const absl::btree_set<int> once(filter.begin(), filter.end());
    for (const int id : once) consider(id);
  }
  std::sort_heap(best.begin(), best.end(), before);
  return best;
}

ClassificationAnswer ToAnswer(const ClassifyParams& params,
                              const repository::ModelDirectory& model,
                              model::Classification result) {
  const std::vector<float> scores = Scores(result.logits, params.score);
  const int top_k = params.top_k == 0 ? kDefaultTopK : params.top_k;
  const std::vector<int> best = BestClasses(scores, params.class_filter, top_k);
  ClassificationAnswer answer;
  answer.categories.reserve(best.size());
  for (const int id : best) {
    if (params.min_score != 0 && scores[id] < params.min_score) break;
    answer.categories.push_back({id, model.labels[id], scores[id]});
  }
  if (params.include_embedding) answer.embedding = std::move(result.embedding);
  if (params.include_logits) answer.logits = std::move(result.logits);
  if (params.heat_map.has_value()) {
    model::HeatMap& map = result.heat_map;
    answer.heat_map = {map.class_id, map.width, map.height,
                       std::move(map.values)};
  }
  return answer;
}

// All in one piece but a heat map's PNG.
class ClassificationEncoder final : public AnswerEncoder {
 public:
  ClassificationEncoder(const ClassifyParams& params,
                        const repository::ModelDirectory& model,
                        model::Classification result,
                        const image::PictureFrame& frame)
      : params_(params), model_(model), result_(std::move(result)) {
    if (WantsPng(params)) heat_map_.emplace(result_.heat_map, frame);
  }

  bool done() const override {
    return answer_.has_value() && (!heat_map_.has_value() || heat_map_->done());
  }
  absl::Duration NextCost() const override {
    return answer_.has_value() ? heat_map_->NextCost()
                               : result_.logits.size() * kPerClass;
  }
  absl::Status EncodeNext() override {
    if (answer_.has_value()) return heat_map_->EncodeNext();
    answer_ = ToAnswer(params_, model_, std::move(result_));
    return absl::OkStatus();
  }
  int64_t bytes() const override {
    if (!answer_.has_value()) return 0;
    int64_t floats = answer_->embedding.size() + answer_->logits.size();
    if (answer_->heat_map.has_value()) {
      floats += answer_->heat_map->values.size();
    }
    return sizeof(float) * floats +
           (heat_map_.has_value() ? heat_map_->bytes() : 0);
  }
  Answer Take() override {
    if (heat_map_.has_value()) answer_->heat_map = heat_map_->Take();
    return *std::move(answer_);
  }

 private:
  const ClassifyParams& params_;
  const repository::ModelDirectory& model_;
  model::Classification result_;
  std::optional<ClassificationAnswer> answer_;
  std::optional<HeatMapEncoder> heat_map_;  // Only of a PNG.
};

class ClassificationHandler final : public TaskHandler {
 public:
  explicit ClassificationHandler(const ClassifyParams& params)
      : params_(params) {}

  model::VisionTask task() const override {
    return model::VisionTask::kClassification;
  }
  absl::Status CheckParams(
      const repository::ModelDirectory& model) const override {
    if (params_.heat_map.has_value() &&
        model.config.backbone.architecture == model::Architecture::kVim) {
      return server::InvalidField(
          "params.heat_map",
          "got one of a Vim, which reads its logits from a single token, "
          "expected a model whose logits are means over the picture");
    }
    return ValidateParams(params_, model.labels.size());
  }
  absl::Duration LongestAnswer(const repository::ModelDirectory&,
                               const ImageFacts& image) const override {
    return WantsPng(params_) ? HeatMapEncoder::Cost(image.seen)
                             : absl::ZeroDuration();
  }
  void FillTask(const repository::ModelDirectory&,
                batching::BatchTask* task) const override {
    model::ClassificationOptions options;
    options.embedding = params_.include_embedding;
    if (params_.heat_map.has_value()) {
      options.heat_map = true;
      options.classes = params_.class_filter;
      if (params_.heat_map->class_id.has_value()) {
        options.classes = {*params_.heat_map->class_id};
      }
    }
    task->options = std::move(options);
  }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const override {
    return std::make_unique<ClassificationEncoder>(
        params_, model, std::get<model::Classification>(std::move(result)),
        frame);
  }
  absl::string_view SmallerResponse() const override {
    return "fewer images, a smaller top_k, no include_embedding, or a heat_map "
           "as VALUES";
  }

 private:
  const ClassifyParams params_;
};

}  // namespace

std::unique_ptr<const TaskHandler> MakeHandler(const ClassifyParams& params) {
  return std::make_unique<ClassificationHandler>(params);
}

}  // namespace sfmamba::prediction
