#ifndef SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/batching/batch_profile.h"

namespace sfmamba::batching {

// Returns a line for each time: height, width, type, images, and the median and
// the 95th percentile in microseconds.
std::string BatchTimesText(const std::vector<BatchTime>& times);

// Parses the output of BatchTimesText(). `text` is not trusted.
// INVALID_ARGUMENT with the line that is broken.
absl::StatusOr<std::vector<BatchTime>> ParseBatchTimes(absl::string_view text);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_
