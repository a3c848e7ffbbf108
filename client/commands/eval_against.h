#ifndef SFMAMBA_CLIENT_COMMANDS_EVAL_AGAINST_H_
#define SFMAMBA_CLIENT_COMMANDS_EVAL_AGAINST_H_

#include <map>
#include <string>

#include "client/commands/command.h"
#include "client/commands/eval_report.h"
#include "client/commands/predict_files.h"
#include "client/eval/dataset.h"

namespace sfmamba::client {

// These functions evaluate two models that have the same classes: the model
// that `flags` name, and the model `against`. They return the evaluation of the
// model that `flags` name. Its metrics begin with metrics that compare the
// answers of both models. They end with the metrics of `against`, whose names
// get the prefix "against_". A picture fails if one of the models does not
// answer it. Everything else works like the functions of evaluate.h.

// The comparing metrics are same_first_class and logit_rms (see
// LogitAgreement). If the dataset is labelled, top1_difference follows. It is
// top1 of the model that `flags` name minus top1 of `against`.
Evaluation CompareClassifiers(const Dataset& dataset, const PredictFlags& flags,
                              const std::string& against,
                              const std::map<int, std::string>& labels,
                              const Console& console);

// The comparing metric is equal_pixels, the fraction of pixels with equal
// classes.
Evaluation CompareSegmenters(const Dataset& dataset, const PredictFlags& flags,
                             const std::string& against,
                             const std::map<int, std::string>& labels,
                             const Console& console);

// The comparing metric is matched_boxes (see BoxAgreement).
Evaluation CompareDetectors(const Dataset& dataset, const PredictFlags& flags,
                            const std::string& against, std::string* found,
                            const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_EVAL_AGAINST_H_
