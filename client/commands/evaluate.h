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

// Called with a model's result for the i-th picture of a dataset, in the order
// of the pictures. If it returns an error, the picture counts as failed.
template <typename Result>
using Observe = std::function<absl::Status(size_t i, const Result& result)>;

// These functions send the pictures of `dataset` to the model that `flags`
// name. They return the outcome of each picture. If the dataset is labelled,
// they also return how accurate the results are. `labels` are the model's
// classes by number. `observe` may be null.

// If `observe` is not null, results contain the logits of all classes.
Evaluation EvaluateClassifier(const Dataset& dataset, const PredictFlags& flags,
                              const std::map<int, std::string>& labels,
                              const Observe<v1::ClassifyResult>& observe,
                              const Console& console);

Evaluation EvaluateSegmenter(const Dataset& dataset, const PredictFlags& flags,
                             const std::map<int, std::string>& labels,
                             const Observe<v1::SegmentResult>& observe,
                             const Console& console);

// Also writes all detections of the dataset's classes to `found`, in COCO's
// results format.
Evaluation EvaluateDetector(const Dataset& dataset, const PredictFlags& flags,
                            const Observe<v1::DetectResult>& observe,
                            std::string* found, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_EVALUATE_H_
