#ifndef SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_
#define SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_

#include <string>
#include <vector>

#include "model/config.h"
#include "model/result.h"

namespace sfmamba::repository {

// Whether a model may compute in a reduced precision, and the figures that say
// why, for the log: one line.
struct PrecisionCheck {
  bool allowed = false;
  std::string figures;
};

// Compares a model's answers to the same images in a reduced precision and in
// fp32; there is at least one. They are close enough if all are finite and
// - logits differ by at most a part of the range of an image's logits (bf16
//   and int8: 3 %), and the first class is the same, or one whose logit in fp32
//   is within 1 % of the range of the first;
// - detections are the same as CheckResult() says;
// - a part of a class map's pixels (bf16 and int8: 99 %) are the same.
PrecisionCheck ComparePrecisions(model::Precision precision,
                                 const std::vector<model::Result>& reduced,
                                 const std::vector<model::Result>& full);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_
