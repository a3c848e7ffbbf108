#ifndef SFMAMBA_CLIENT_COMMANDS_EVAL_REPORT_H_
#define SFMAMBA_CLIENT_COMMANDS_EVAL_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client/commands/command.h"
#include "client/commands/predict_files.h"
#include "client/eval/average_precision.h"
#include "client/eval/scores.h"

namespace sfmamba::client {

struct Metric {
  std::string name;
  double value = 0;
};

// The average precision of one class.
struct DetectorFigures {
  std::string label;
  int64_t objects = 0;
  AveragePrecision::Figures boxes;
  std::optional<AveragePrecision::Figures> masks;
};

// The results of an evaluation of one model on one dataset.
struct Evaluation {
  std::vector<FileOutcome> outcomes;
  std::vector<Metric> metrics;
  Confusion confusion;                // Empty for a detector.
  std::map<int, std::string> labels;  // Names of the classes, by number.
  std::vector<DetectorFigures> detector_classes;  // Only classes with objects.
};

// Writes the figures, first by class and then overall, as tables or as JSON.
// Writes at most ten errors. Draws the confusion matrix to the file `confusion`
// unless this name is empty. Returns the exit code.
int ReportEvaluation(const Evaluation& evaluation, const CommonFlags& flags,
                     const std::string& confusion, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_EVAL_REPORT_H_
