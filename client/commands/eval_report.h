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

// The average precision of a class.
struct DetectorFigures {
  std::string label;
  int64_t objects = 0;
  AveragePrecision::Figures boxes;
  std::optional<AveragePrecision::Figures> masks;
};

// One evaluation: what to send, what is done with each answer, and what came of
// it all.
struct Evaluation {
  std::vector<FileOutcome> outcomes;
  std::vector<Metric> metrics;
  Confusion confusion;                // Empty for a detector.
  std::map<int, std::string> labels;  // The classes' names, by their numbers.
  std::vector<DetectorFigures> detector_classes;  // Those with objects.
};

// Shows the figures, by class first, as tables or JSON by the flags, up to ten
// errors, and draws the confusion matrix to the file named `confusion` unless
// that is empty; returns the exit code.
int ReportEvaluation(const Evaluation& evaluation, const CommonFlags& flags,
                     const std::string& confusion, const Console& console);

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_EVAL_REPORT_H_
