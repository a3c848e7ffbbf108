#ifndef SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_
#define SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
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
// - logits differ by at most 3 % of the range of an image's logits, and the
//   first class is the same, or one whose logit in fp32 is within 1 % of the
//   range of the first;
// - detections are the same as CheckResult() says;
// - 99 % of a class map's pixels are the same.
PrecisionCheck ComparePrecisions(const std::vector<model::Result>& reduced,
                                 const std::vector<model::Result>& full);

// The text of a record of `check`, a line.
std::string ToRecord(const PrecisionCheck& check);

// Reads what ToRecord() has written; nothing if `text` is anything else.
std::optional<PrecisionCheck> FromRecord(absl::string_view text);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_PRECISION_CHECK_H_
