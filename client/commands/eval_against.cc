#include "client/commands/eval_against.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/commands/evaluate.h"
#include "client/eval/agreement.h"
#include "client/eval/scores.h"
#include "client/picture/masks.h"

namespace sfmamba::client {
namespace {

template <typename Result>
using Evaluate = std::function<Evaluation(const PredictFlags& flags,
                                          const Observe<Result>& observe)>;

// Evaluates the model `against` first, and then the model that `flags` name.
// For each picture, `keep` converts the results of both models, and `compare`
// receives the converted results. Returns the evaluation of the model that
// `flags` name. Its metrics begin with the metrics that `alike` returns, which
// compare both models. The model's own metrics and the metrics of `against`
// follow.
template <typename Kept, typename Result>
Evaluation EvaluateBoth(
    const PredictFlags& flags, const std::string& against, size_t pictures,
    const Evaluate<Result>& evaluate,
    const std::function<absl::StatusOr<Kept>(const Result&)>& keep,
    const std::function<absl::Status(const Kept&, const Kept& reference)>&
        compare,
    const std::function<std::vector<Metric>(
        const Evaluation&, const Evaluation& reference)>& alike) {
  std::vector<std::optional<Kept>> references(pictures);
  PredictFlags reference_flags = flags;
  reference_flags.model = against;
  const Evaluation reference =
      evaluate(reference_flags, [&](size_t i, const Result& result) {
        absl::StatusOr<Kept> kept = keep(result);
        if (kept.ok()) references[i] = *std::move(kept);
        return kept.status();
      });
  Evaluation evaluation = evaluate(flags, [&](size_t i, const Result& result) {
    const absl::StatusOr<Kept> kept = keep(result);
    if (!kept.ok() || !references[i]) return kept.status();
    return compare(*kept, *references[i]);
  });
  std::vector<Metric> metrics = alike(evaluation, reference);
  metrics.insert(metrics.end(), evaluation.metrics.begin(),
                 evaluation.metrics.end());
  for (const Metric& metric : reference.metrics) {
    metrics.push_back({absl::StrCat("against_", metric.name), metric.value});
  }
  evaluation.metrics = std::move(metrics);
  for (size_t i = 0; i < pictures; ++i) {
    FileOutcome& outcome = evaluation.outcomes[i];
    if (outcome.status.ok()) outcome.status = reference.outcomes[i].status;
    if (outcome.drawing.ok()) outcome.drawing = reference.outcomes[i].drawing;
  }
  return evaluation;
}

// Returns the logits by class. Returns DATA_LOSS if a class has no logit.
absl::StatusOr<std::vector<float>> Logits(const v1::ClassifyResult& result,
                                          size_t classes) {
  std::vector<std::optional<float>> by_class(classes);
  for (const v1::Category& category : result.categories()) {
    const size_t id = category.class_id();
    if (id < classes) by_class[id] = category.score();
  }
  std::vector<float> logits;
  for (const std::optional<float>& logit : by_class) {
    if (logit) logits.push_back(*logit);
  }
  if (logits.size() == classes) return logits;
  return absl::DataLossError(absl::StrCat("got logits of ", logits.size(),
                                          " classes, expected ", classes));
}

}  // namespace

Evaluation CompareClassifiers(const Dataset& dataset, const PredictFlags& flags,
                              const std::string& against,
                              const std::map<int, std::string>& labels,
                              const Console& console) {
  using Kept = std::vector<float>;
  LogitAgreement agreement;
  return EvaluateBoth<Kept, v1::ClassifyResult>(
      flags, against, dataset.samples.size(),
      [&](const PredictFlags& one, const Observe<v1::ClassifyResult>& observe) {
        return EvaluateClassifier(dataset, one, labels, observe, console);
      },
      [&](const v1::ClassifyResult& result) {
        return Logits(result, labels.size());
      },
      [&](const Kept& logits, const Kept& reference) {
        agreement.Add(logits, reference);
        return absl::OkStatus();
      },
      [&](const Evaluation& evaluation, const Evaluation& reference) {
        std::vector<Metric> metrics = {
            {"same_first_class", agreement.SameFirstClass()},
            {"logit_rms", agreement.Rms()}};
        if (dataset.labelled) {
          metrics.push_back(
              {"top1_difference",
               evaluation.metrics[0].value - reference.metrics[0].value});
        }
        return metrics;
      });
}

Evaluation CompareSegmenters(const Dataset& dataset, const PredictFlags& flags,
                             const std::string& against,
                             const std::map<int, std::string>& labels,
                             const Console& console) {
  // The results of `against` stay in memory until the other model is evaluated.
  // They are kept encoded because a decoded class map is larger.
  using Kept = v1::SegmentResult;
  Confusion pixels;
  return EvaluateBoth<Kept, v1::SegmentResult>(
      flags, against, dataset.samples.size(),
      [&](const PredictFlags& one, const Observe<v1::SegmentResult>& observe) {
        return EvaluateSegmenter(dataset, one, labels, observe, console);
      },
      [](const v1::SegmentResult& result) { return result; },
      [&](const Kept& result, const Kept& reference) {
        const absl::StatusOr<IndexMap> map = DecodeIndexMap(result);
        if (!map.ok()) return map.status();
        const absl::StatusOr<IndexMap> expected = DecodeIndexMap(reference);
        return expected.ok() ? pixels.Add(*expected, *map) : expected.status();
      },
      [&](const Evaluation&, const Evaluation&) {
        return std::vector<Metric>{{"equal_pixels", pixels.Accuracy()}};
      });
}

Evaluation CompareDetectors(const Dataset& dataset, const PredictFlags& flags,
                            const std::string& against, std::string* found,
                            const Console& console) {
  using Kept = v1::DetectResult;
  BoxAgreement agreement;
  return EvaluateBoth<Kept, v1::DetectResult>(
      flags, against, dataset.samples.size(),
      [&](const PredictFlags& one, const Observe<v1::DetectResult>& observe) {
        // `against` is evaluated first. In the end, `found` contains only the
        // detections of the model that `flags` name.
        found->clear();
        return EvaluateDetector(dataset, one, observe, found, console);
      },
      [](const v1::DetectResult& result) { return result; },
      [&](const Kept& result, const Kept& reference) {
        agreement.Add(result, reference);
        return absl::OkStatus();
      },
      [&](const Evaluation&, const Evaluation&) {
        return std::vector<Metric>{{"matched_boxes", agreement.Matched()}};
      });
}

}  // namespace sfmamba::client
