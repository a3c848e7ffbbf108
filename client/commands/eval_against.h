#ifndef SFMAMBA_CLIENT_COMMANDS_EVAL_AGAINST_H_
#define SFMAMBA_CLIENT_COMMANDS_EVAL_AGAINST_H_

#include <map>
#include <string>

#include "client/commands/command.h"
#include "client/commands/eval_report.h"
#include "client/commands/predict_files.h"
#include "client/eval/dataset.h"

namespace sfmamba::client {

// These do what the functions of evaluate.h do, for the model that `flags` name
// and for the model `against`, which has the same classes. The evaluation is
// that of the first. Metrics that tell how alike both answer come first, and
// the metrics of `against` follow with the prefix "against_". A picture that
// either model does not answer has failed.

// Metrics: same_first_class and logit_rms (LogitAgreement), and, if the dataset
// is labelled, top1_difference: the first model's top1 less the other's.
Evaluation CompareClassifiers(const Dataset& dataset, const PredictFlags& flags,
                              const std::string& against,
                              const std::map<int, std::string>& labels,
                              const Console& console);

// Metric: equal_pixels, a share.
Evaluation CompareSegmenters(const Dataset& dataset, const PredictFlags& flags,
                             const std::string& against,
                             const std::map<int, std::string>& labels,
                             const Console& console);

// Metric: matched_boxes (BoxAgreement).
Evaluation CompareDetectors(const Dataset& dataset, const PredictFlags& flags,
                            const std::string& against, std::string* found,
                            const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_EVAL_AGAINST_H_
