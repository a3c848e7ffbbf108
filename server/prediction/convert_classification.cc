#include "server/prediction/convert_classification.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sfmamba::prediction {
namespace {

constexpr int kDefaultTopK = 5;

// Scores of all classes, in the scale that was asked for.
std::vector<float> Scores(const std::vector<float>& logits,
                          v1::ClassifyParams::ScoreType type) {
  std::vector<float> scores(logits.size());
  switch (type) {
    case v1::ClassifyParams::LOGIT:
      return logits;
    case v1::ClassifyParams::SIGMOID:
      for (size_t i = 0; i < logits.size(); ++i) {
        scores[i] = 1 / (1 + std::exp(-static_cast<double>(logits[i])));
      }
      return scores;
    default: {
      const double max = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (float logit : logits) sum += std::exp(logit - max);
      for (size_t i = 0; i < logits.size(); ++i) {
        scores[i] = std::exp(logits[i] - max) / sum;
      }
      return scores;
    }
  }
}

// Classes that compete, each once.
std::vector<int> Candidates(const v1::ClassifyParams& params, int classes) {
  if (params.class_filter().empty()) {
    std::vector<int> all(classes);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::vector<int> some(params.class_filter().begin(),
                        params.class_filter().end());
  std::sort(some.begin(), some.end());
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return some;
}

}  // namespace

void ToProto(const model::Classification& classification,
             const v1::ClassifyParams& params,
             const std::vector<std::string>& labels,
             v1::ClassifyResult* result) {
  const int classes = static_cast<int>(classification.logits.size());
  const std::vector<float> scores =
      Scores(classification.logits, params.score_type());
  std::vector<int> ids = Candidates(params, classes);
  const int top_k = params.top_k() == 0 ? kDefaultTopK : params.top_k();
  const int count = std::min<int>(top_k, ids.size());
  std::partial_sort(
      ids.begin(), ids.begin() + count, ids.end(), [&scores](int a, int b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
      });
  for (int i = 0; i < count; ++i) {
    const int id = ids[i];
    if (params.min_score() != 0 && scores[id] < params.min_score()) break;
    v1::Category* category = result->add_categories();
    category->set_class_id(id);
    category->set_label(labels[id]);
    category->set_score(scores[id]);
  }
  if (params.include_embedding()) {
    result->mutable_embedding()->Add(classification.embedding.begin(),
                                     classification.embedding.end());
  }
}

}  // namespace sfmamba::prediction
