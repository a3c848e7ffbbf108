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
constexpr absl::Duration kPerClass = absl::Nanoseconds(20);

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
    case ClassifyParams::Score::kSoftmax: {
      const double max = *std::max_element(logits.begin(), logits.end());
      std::vector<double> powers(logits.size());
      double sum = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        sum += powers[i] = std::exp(logits[i] - max);
      }
      for (size_t i = 0; i < logits.size(); ++i) scores[i] = powers[i] / sum;
      return scores;
    }
  }
  return scores;
}

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
  const std::vector<float> scores = Scores(result.logits, params.score);
  std::vector<int> ids = Candidates(params, scores.size());
  const int top_k = params.top_k == 0 ? kDefaultTopK : params.top_k;
  const int count = std::min<int>(top_k, ids.size());
  std::partial_sort(
      ids.begin(), ids.begin() + count, ids.end(), [&scores](int a, int b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
      });
  ClassificationAnswer answer;
  answer.categories.reserve(count);
  for (int i = 0; i < count; ++i) {
    const int id = ids[i];
    if (params.min_score != 0 && scores[id] < params.min_score) break;
    answer.categories.push_back({id, model.labels[id], scores[id]});
  }
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
