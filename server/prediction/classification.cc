// This file implements the Classify task. It validates the request's parameters
// and encodes the model's results.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/types/span.h"
#include "server/errors/reasons.h"
#include "server/prediction/heat_map_encoder.h"
#include "server/prediction/request_validation.h"
#include "server/prediction/softmax.h"
#include "server/prediction/task_handler.h"

namespace sfmamba::prediction {
namespace {

constexpr int kDefaultTopK = 5;
constexpr absl::Duration kPerClass = absl::Nanoseconds(5);
// An answer takes at least this many bytes for each number. In JSON, a number
// takes at least a digit and a comma.
constexpr int kLeastNumberBytes = 2;
// Each value of a heat map covers a square of the model input. This is the side
// of the square in pixels.
constexpr int kHeatMapStride = 32;

bool WantsPng(const v1::ClassifyParams& params) {
  return params.heat_map().encoding() == v1::HeatMapParams::PNG;
}

// Converts the logits of all classes to scores of the requested type.
std::vector<float> Scores(const std::vector<float>& logits,
                          v1::ClassifyParams::ScoreType type) {
  if (type == v1::ClassifyParams::LOGIT) return logits;
  if (type != v1::ClassifyParams::SIGMOID) return Softmax(logits);
  std::vector<float> scores(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    scores[i] = 1 / (1 + std::exp(-static_cast<double>(logits[i])));
  }
  return scores;
}

// Returns the `count` best classes, best first, or all classes if there are
// fewer. If `filter` is not empty, only the classes in `filter` are considered.
// Classes with equal scores are ordered by id.
std::vector<int> BestClasses(const std::vector<float>& scores,
                             absl::Span<const int32_t> filter, int count) {
  std::vector<int> best;
  const auto before = [&scores](int a, int b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  // `best` is a heap whose first element is the worst class so far. Classes are
  // visited by ascending id. A class replaces the worst class only if its score
  // is higher. Among equal scores, the lowest ids therefore remain.
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

// Converts the model's output `found` to the response. The PNG of a heat map is
// added later by HeatMapEncoder.
v1::ClassifyResult ToResult(const v1::ClassifyParams& params,
                            const repository::ModelDirectory& model,
                            const model::Classification& found) {
  const std::vector<float> scores = Scores(found.logits, params.score_type());
  const int top_k = params.top_k() == 0 ? kDefaultTopK : params.top_k();
  v1::ClassifyResult result;
  for (const int id : BestClasses(scores, params.class_filter(), top_k)) {
    if (params.min_score() != 0 && scores[id] < params.min_score()) break;
    v1::Category* category = result.add_categories();
    category->set_class_id(id);
    category->set_label(model.labels[id]);
    category->set_score(scores[id]);
  }
  if (params.include_embedding()) {
    result.mutable_embedding()->Add(found.embedding.begin(),
                                    found.embedding.end());
  }
  if (params.has_heat_map() && !WantsPng(params)) {
    v1::HeatMap* map = result.mutable_heat_map();
    map->set_class_id(found.heat_map.class_id);
    map->set_width(found.heat_map.width);
    map->set_height(found.heat_map.height);
    map->mutable_values()->Add(found.heat_map.values.begin(),
                               found.heat_map.values.end());
  }
  return result;
}

// Encodes a classification. The first step encodes everything except the PNG of
// a heat map. If the request asks for this PNG, further steps encode it.
class ClassificationEncoder final : public AnswerEncoder {
 public:
  ClassificationEncoder(const v1::ClassifyParams& params, bool include_logits,
                        const repository::ModelDirectory& model,
                        model::Classification found,
                        const image::PictureFrame& frame)
      : params_(params),
        include_logits_(include_logits),
        model_(model),
        found_(std::move(found)) {
    if (WantsPng(params)) heat_map_.emplace(found_.heat_map, frame);
  }

  bool done() const override {
    return result_.has_value() && (!heat_map_.has_value() || heat_map_->done());
  }
  absl::Duration NextCost() const override {
    return result_.has_value() ? heat_map_->NextCost()
                               : found_.logits.size() * kPerClass;
  }
  absl::Status EncodeNext() override {
    if (result_.has_value()) return heat_map_->EncodeNext();
    result_ = ToResult(params_, model_, found_);
    return absl::OkStatus();
  }
  int64_t bytes() const override {
    if (!result_.has_value()) return 0;
    const int64_t floats = result_->embedding_size() +
                           result_->heat_map().values_size() +
                           (include_logits_ ? found_.logits.size() : 0);
    return sizeof(float) * floats +
           (heat_map_.has_value() ? heat_map_->bytes() : 0);
  }
  Answer Take() override {
    if (heat_map_.has_value()) *result_->mutable_heat_map() = heat_map_->Take();
    Answer answer;
    answer.result = *std::move(result_);
    if (include_logits_) answer.logits = std::move(found_.logits);
    return answer;
  }

 private:
  const v1::ClassifyParams& params_;
  const bool include_logits_;
  const repository::ModelDirectory& model_;
  model::Classification found_;
  std::optional<v1::ClassifyResult> result_;
  // Set only if the request asks for a heat map as PNG.
  std::optional<HeatMapEncoder> heat_map_;
};

class ClassificationHandler final : public TaskHandler {
 public:
  ClassificationHandler(const v1::ClassifyParams& params, bool include_logits)
      : params_(params), include_logits_(include_logits) {}

  model::VisionTask task() const override {
    return model::VisionTask::kClassification;
  }
  absl::Status CheckParams(
      const repository::ModelDirectory& model) const override {
    const auto architecture = model.config.backbone.architecture;
    if (params_.has_heat_map() &&
        architecture != model::Architecture::kHybrid &&
        architecture != model::Architecture::kVMamba) {
      return server::InvalidField(
          "params.heat_map",
          "got a heat map of a Vim, MambaOut or EfficientViM, expected a model "
          "whose logits are means over the picture");
    }
    return ValidateParams(params_, model.labels.size());
  }
  int64_t LeastAnswerBytes(const repository::ModelDirectory& model,
                           const ImageFacts& image) const override {
    int64_t numbers = include_logits_ ? model.labels.size() : 0;
    if (params_.include_embedding()) numbers += model.config.embedding_width();
    if (params_.has_heat_map() && !WantsPng(params_)) {
      numbers += int64_t{1} * (image.input.height / kHeatMapStride) *
                 (image.input.width / kHeatMapStride);
    }
    return numbers * kLeastNumberBytes;
  }
  absl::Duration LongestAnswer(const repository::ModelDirectory&,
                               const ImageFacts& image) const override {
    return WantsPng(params_) ? HeatMapEncoder::Cost(image.seen)
                             : absl::ZeroDuration();
  }
  void FillTask(const repository::ModelDirectory&,
                batching::BatchTask* task) const override {
    model::ClassificationOptions options;
    options.embedding = params_.include_embedding();
    if (params_.has_heat_map()) {
      options.heat_map = true;
      options.classes = {params_.class_filter().begin(),
                         params_.class_filter().end()};
      if (params_.heat_map().has_class_id()) {
        options.classes = {params_.heat_map().class_id()};
      }
    }
    task->options = std::move(options);
  }
  std::unique_ptr<AnswerEncoder> MakeEncoder(
      const repository::ModelDirectory& model, model::Result result,
      const image::PictureFrame& frame) const override {
    return std::make_unique<ClassificationEncoder>(
        params_, include_logits_, model,
        std::get<model::Classification>(std::move(result)), frame);
  }
  absl::string_view SmallerResponse() const override {
    return "fewer images, a smaller top_k, no include_embedding, or a heat_map "
           "as VALUES";
  }

 private:
  const v1::ClassifyParams params_;
  const bool include_logits_;
};

}  // namespace

std::unique_ptr<const TaskHandler> MakeHandler(const v1::ClassifyParams& params,
                                               bool include_logits) {
  return std::make_unique<ClassificationHandler>(params, include_logits);
}

}  // namespace sfmamba::prediction
