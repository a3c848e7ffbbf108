#include "server/prediction/classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace sfmamba::prediction {
namespace {

constexpr int kDefaultTopK = 5;
constexpr absl::Duration kPerClass = absl::Nanoseconds(5);

// Tells classes' scores, in the scale that was asked for. It rises with the
// logit, so that only the best classes' scores are needed.
class Scorer {
 public:
  Scorer(const std::vector<float>& logits, ClassifyParams::Score type)
      : logits_(logits), type_(type) {
    if (type != ClassifyParams::Score::kSoftmax || logits.empty()) return;
    max_ = *std::max_element(logits.begin(), logits.end());
    for (const float logit : logits) sum_ += std::exp(logit - max_);
  }

  float Of(int id) const {
    const double logit = logits_[id];
    switch (type_) {
      case ClassifyParams::Score::kLogit:
        break;
      case ClassifyParams::Score::kSigmoid:
        return 1 / (1 + std::exp(-logit));
      case ClassifyParams::Score::kSoftmax:
        return std::exp(logit - max_) / sum_;
    }
    return logit;
  }

 private:
  const std::vector<float>& logits_;
  const ClassifyParams::Score type_;
  float max_ = 0;
  double sum_ = 0;
};

// Classes that compete, each once.
std::vector<int> Candidates(const ClassifyParams& params, int classes) {
  if (params.class_filter.empty()) {
    std::vector<int> all(classes);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> some(params.class_filter.begin(), params.class_filter.end());
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return some;
}

ClassificationAnswer ToAnswer(const ClassifyParams& params,
                              const repository::ModelDirectory& model,
                              model::Classification result) {
  const std::vector<float>& logits = result.logits;
  const Scorer scorer(logits, params.score);
  std::vector<int> ids = Candidates(params, logits.size());
  const int top_k = params.top_k == 0 ? kDefaultTopK : params.top_k;
  const int count = std::min<int>(top_k, ids.size());
  std::partial_sort(
      ids.begin(), ids.begin() + count, ids.end(), [&logits](int a, int b) {
        return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
      });
  ClassificationAnswer answer;
  answer.categories.reserve(count);
  for (int i = 0; i < count; ++i) {
    const int id = ids[i];
    const float score = scorer.Of(id);
    if (params.min_score != 0 && score < params.min_score) break;
    answer.categories.push_back({id, model.labels[id], score});
  }
  // Different logits may have the same score.
  std::sort(answer.categories.begin(), answer.categories.end(),
            [](const auto& a, const auto& b) {
              return a.score != b.score ? a.score > b.score
                                        : a.class_id < b.class_id;
            });
  if (params.include_embedding) answer.embedding = std::move(result.embedding);
  if (params.include_logits) answer.logits = std::move(result.logits);
  return answer;
}

// All in one piece.
class ClassificationEncoder final : public AnswerEncoder {
 public:
  ClassificationEncoder(const ClassifyParams& params,
                        const repository::ModelDirectory& model,
                        model::Classification result)
      : params_(params), model_(model), result_(std::move(result)) {}

  bool done() const override { return answer_.has_value(); }
  absl::Duration NextCost() const override {
    return result_.logits.size() * kPerClass;
  }
  absl::Status EncodeNext() override {
    answer_ = ToAnswer(params_, model_, std::move(result_));
    return absl::OkStatus();
  }
  int64_t bytes() const override {
    return sizeof(float) * (answer_->embedding.size() + answer_->logits.size());
  }
  Answer Take() override { return *std::move(answer_); }

 private:
  const ClassifyParams& params_;
  const repository::ModelDirectory& model_;
  model::Classification result_;
  std::optional<ClassificationAnswer> answer_;
};

}  // namespace

absl::Status ClassificationHandler::CheckParams(
    const repository::ModelDirectory& model) const {
  return ValidateParams(params_, model.labels.size());
}

int64_t ClassificationHandler::ResultBytes(const repository::ModelDirectory&,
                                           const ImageFacts&) const {
  return 0;  // Too few to count.
}

absl::Duration ClassificationHandler::LongestAnswer(
    const repository::ModelDirectory&, const ImageFacts&) const {
  return absl::ZeroDuration();  // Microseconds.
}

void ClassificationHandler::FillTask(const repository::ModelDirectory&,
                                     batching::BatchTask*) const {}

std::unique_ptr<AnswerEncoder> ClassificationHandler::MakeEncoder(
    const repository::ModelDirectory& model, model::Result result,
    const image::PictureFrame&) const {
  return std::make_unique<ClassificationEncoder>(
      params_, model, std::get<model::Classification>(std::move(result)));
}

absl::string_view ClassificationHandler::SmallerResponse() const {
  return "fewer images, a smaller top_k, or no include_embedding";
}

}  // namespace sfmamba::prediction
