#ifndef SFMAMBA_CLIENT_COMMANDS_EVALUATE_H_
#define SFMAMBA_CLIENT_COMMANDS_EVALUATE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "client/commands/command.h"
#include "client/commands/eval_report.h"
#include "client/commands/predict_files.h"
#include "client/eval/dataset.h"
#include "sfmamba/v1/vision.pb.h"

namespace sfmamba::client {

// Is called with a model's result for the i-th picture of a dataset, in their
// order. An error fails the picture.
template <typename Result>
using Observe = std::function<absl::Status(size_t i, const Result& result)>;

// These send the pictures of `dataset` to the model that `flags` name, and
// return what became of them and, if the dataset is labelled, how right the
// results are. `labels` are the model's classes by their numbers. `observe` may
// be null.

// With `observe`, results have the logits of all classes.
Evaluation EvaluateClassifier(const Dataset& dataset, const PredictFlags& flags,
                              const std::map<int, std::string>& labels,
                              const Observe<v1::ClassifyResult>& observe,
                              const Console& console);

Evaluation EvaluateSegmenter(const Dataset& dataset, const PredictFlags& flags,
                             const std::map<int, std::string>& labels,
                             const Observe<v1::SegmentResult>& observe,
                             const Console& console);

// Writes all detections of the dataset's classes to `found`, as COCO results.
Evaluation EvaluateDetector(const Dataset& dataset, const PredictFlags& flags,
                            const Observe<v1::DetectResult>& observe,
                            std::string* found, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_EVALUATE_H_
