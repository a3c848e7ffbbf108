#include "server/prediction/classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

namespace sfmamba::prediction {
namespace {

constexpr int kDefaultTopK = 5;

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
      double sum = 0;
      for (float logit : logits) sum += std::exp(logit - max);
      for (size_t i = 0; i < logits.size(); ++i) {
        scores[i] = std::exp(logits[i] - max) / sum;
      }
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

}  // namespace

absl::Status ClassificationHandler::CheckParams(
    const repository::ModelDirectory& model) const {
  return ValidateParams(params_, model.labels.size());
}

int64_t ClassificationHandler::ResultBytes(const repository::ModelDirectory&,
                                           const ImageFacts&) const {
  return 0;  // Too few to count.
}

void ClassificationHandler::FillTask(const repository::ModelDirectory&,
                                     batching::BatchTask*) const {}

absl::StatusOr<Answer> ClassificationHandler::ToAnswer(
    const repository::ModelDirectory& model, const model::Result& result,
    const image::PictureFrame&) const {
  const auto& classification = std::get<model::Classification>(result);
  const std::vector<float> scores =
      Scores(classification.logits, params_.score);
  std::vector<int> ids = Candidates(params_, scores.size());
  const int top_k = params_.top_k == 0 ? kDefaultTopK : params_.top_k;
  const int count = std::min<int>(top_k, ids.size());
  std::partial_sort(
      ids.begin(), ids.begin() + count, ids.end(), [&scores](int a, int b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
      });
  ClassificationAnswer answer;
  answer.categories.reserve(count);
  for (int i = 0; i < count; ++i) {
    const int id = ids[i];
    if (params_.min_score != 0 && scores[id] < params_.min_score) break;
    answer.categories.push_back({id, model.labels[id], scores[id]});
  }
  if (params_.include_embedding) answer.embedding = classification.embedding;
  return Answer(std::move(answer));
}

absl::string_view ClassificationHandler::SmallerResponse() const {
  return "fewer images, a smaller top_k, or no include_embedding";
}

}  // namespace sfmamba::prediction
