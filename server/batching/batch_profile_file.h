#ifndef SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/batching/batch_profile.h"

namespace sfmamba::batching {

// What a measured profile holds for.
struct BatchProfileKey {
  std::string content;  // The model's network.
  std::string device;   // Its name and, where that matters, its driver.
  std::string build;    // Version of the kernels.
};

// Returns JSON, the text of a profile's file: the key and the times.
std::string BatchProfileText(const BatchProfileKey& key,
                             const std::vector<BatchTime>& times);

// Parses the output of BatchProfileText(). `text` is not trusted.
// FAILED_PRECONDITION if it is for another key, INVALID_ARGUMENT with the entry
// if it is broken: the profile must be measured anew then.
absl::StatusOr<std::vector<BatchTime>> ParseBatchProfile(
    const BatchProfileKey& key, absl::string_view text);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_
