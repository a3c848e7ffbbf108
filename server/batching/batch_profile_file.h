#ifndef SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_
#define SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/batching/batch_profile.h"

namespace sfmamba::batching {

// What a measured profile holds for. None contains a newline.
struct BatchProfileKey {
  std::string content;  // The model's network.
  std::string device;   // Its name and, where that matters, its driver.
  std::string build;    // Version of the kernels.
};

// Returns a few lines with the key, then one line for each time.
std::string BatchProfileText(const BatchProfileKey& key,
                             const std::vector<BatchTime>& times);

// Parses the output of BatchProfileText(). `text` is not trusted.
// FAILED_PRECONDITION if it is for another key, INVALID_ARGUMENT with the line
// if it is broken.
absl::StatusOr<std::vector<BatchTime>> ParseBatchProfile(
    const BatchProfileKey& key, absl::string_view text);

// Reads a file. NOT_FOUND if it does not exist, and the errors of
// ParseBatchProfile(): after any of them the profile must be measured anew.
absl::StatusOr<std::vector<BatchTime>> ReadBatchProfile(
    const BatchProfileKey& key, const std::string& path);

// Replaces the file atomically. If there is an error, the file is unchanged.
absl::Status WriteBatchProfile(const BatchProfileKey& key,
                               const std::vector<BatchTime>& times,
                               const std::string& path);

}  // namespace sfmamba::batching

#endif  // SFMAMBA_SERVER_BATCHING_BATCH_PROFILE_FILE_H_
