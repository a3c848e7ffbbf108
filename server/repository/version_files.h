#ifndef SFMAMBA_SERVER_REPOSITORY_VERSION_FILES_H_
#define SFMAMBA_SERVER_REPOSITORY_VERSION_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace sfmamba::repository {

// The names of a version's files.
inline constexpr char kConfigFile[] = "config.textproto";
inline constexpr char kHuggingFaceFile[] = "config.json";
inline constexpr char kPreprocessorFile[] = "preprocessor_config.json";
inline constexpr char kWeightsFile[] = "model.safetensors";
inline constexpr char kShardsFile[] = "model.safetensors.index.json";
inline constexpr char kLabelsFile[] = "labels.txt";
inline constexpr char kGoldenFile[] = "golden/golden.safetensors";

struct VersionPath {
  std::string folder;
  // The folder, in canonical form, that every file must lie in once all links
  // are followed. Empty: files may lie anywhere, because the operator named
  // `folder` itself.
  std::string root;
};

// Returns `path` with all links followed. NOT_FOUND if there is nothing,
// INVALID_ARGUMENT if it ends outside `root`, which may be empty as in
// VersionPath. A path through /proc/<pid>/root, as KServe's modelcar has it,
// leads into another container: it is returned as it is, and may have a link
// behind that only if this stays in `root`.
absl::StatusOr<std::string> FollowLinks(const std::string& root,
                                        const std::string& path);

// Returns the path of the version's file `name` with all links followed.
// NOT_FOUND if there is nothing, INVALID_ARGUMENT if it is no regular file or
// lies outside the version's root.
absl::StatusOr<std::string> FindFile(const VersionPath& version,
                                     const std::string& name);

// The files that a version has, with all links followed. A path is empty if
// there is no such file.
struct VersionFiles {
  std::string config;        // kConfigFile
  std::string hugging_face;  // kHuggingFaceFile
  std::string preprocessor;  // kPreprocessorFile
  std::string labels;        // kLabelsFile
  // kWeightsFile or, without it, the shards that kShardsFile names, in the
  // order of their names.
  std::vector<std::string> weights;
  int64_t weights_size = 0;  // Bytes of all `weights`.
};

// Errors name the file but never the folder, because clients see them.
// NOT_FOUND if there is neither configuration or if a shard is missing.
absl::StatusOr<VersionFiles> FindVersionFiles(const VersionPath& version);

// NOT_FOUND for a missing kWeightsFile. It names the file that the folder has
// in its place, such as an adapter or a pickle, and says what to do about it.
absl::Status NoWeights(const VersionPath& version);

// Returns the names, sizes, times and inodes of the version's files. The text
// changes whenever one of them is written or replaced, also behind a link; it
// is empty if there are none.
std::string Fingerprint(const VersionPath& version);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_VERSION_FILES_H_
