#ifndef SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_
#define SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_

#include <string>
#include <vector>

#include "model/config.h"
#include "model/result.h"

namespace sfmamba::repository {

// The result of comparing a model in a reduced precision with the model in
// fp32. `allowed` is true if the model may use the reduced precision. `figures`
// contains the measured differences on one line for the log.
struct PrecisionCheck {
  bool allowed = false;
  std::string figures;
};

// Compares a model's results in a reduced precision and in fp32 for the same
// images. There must be at least one image. The reduced precision is allowed if
// all results are finite and meet these limits:
// - Logits differ by at most 3 % of the range of the fp32 logits.
// - The class with the highest logit is the same. Another class is allowed if
//   its fp32 logit is below the highest fp32 logit by at most 1 % of the range.
// - Detections meet the limits of CheckResult() in golden.h. For example, each
//   fp32 detection with a score of 0.5 or more needs a match. A match has the
//   same class, overlaps by at least 0.8 (IoU), and its score differs by at
//   most 0.1.
// - At least 99 % of a class map's pixels are equal.
PrecisionCheck ComparePrecisions(model::Precision precision,
                                 const std::vector<model::Result>& reduced,
                                 const std::vector<model::Result>& full);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_
