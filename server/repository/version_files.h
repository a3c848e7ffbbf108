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
  // The path of the folder that must contain all files of the version, even
  // after links are followed. FollowLinks() has returned this path. If empty,
  // the files may be anywhere, because the operator has named `folder`
  // directly.
  std::string root;
};

// Returns `path` with all links followed. There is one exception: if the target
// is in the file system of another container, returns `path` unchanged. Returns
// NOT_FOUND if `path` does not exist. Returns INVALID_ARGUMENT if the target is
// outside `root`, unless `root` is empty.
//
// KServe can keep a model in another container (the modelcar). The repository's
// folder is then a link to /proc/<pid>/root/models. If all links were followed,
// the result would be a path in the other file system, which this process could
// not use. In this case, `root` is in the other container too, and no link
// below `root` may lead outside `root`.
absl::StatusOr<std::string> FollowLinks(const std::string& root,
                                        const std::string& path);

// Returns the path of the version's file `name` with all links followed.
// Returns NOT_FOUND if the file does not exist. Returns INVALID_ARGUMENT if the
// path is not a regular file or is outside the version's root.
absl::StatusOr<std::string> FindFile(const VersionPath& version,
                                     const std::string& name);

// The paths of a version's files with all links followed. The path of a missing
// file is empty.
struct VersionFiles {
  std::string config;        // The path of kConfigFile.
  std::string hugging_face;  // The path of kHuggingFaceFile.
  std::string preprocessor;  // The path of kPreprocessorFile.
  std::string labels;        // The path of kLabelsFile.
  // The path of kWeightsFile, or the paths of the shards that kShardsFile
  // lists, sorted by name.
  std::vector<std::string> weights;
  int64_t weights_size = 0;  // The total size of `weights` in bytes.
};

// Finds a version's files. Returns NOT_FOUND if there is no configuration file
// or a shard is missing. An error contains the name of the file but never the
// folder, because clients see errors.
absl::StatusOr<VersionFiles> FindVersionFiles(const VersionPath& version);

// Returns the NOT_FOUND error for a missing kWeightsFile. If the folder has
// another file with weights, such as an adapter or a pickle, the error contains
// the file's name and says what to do.
absl::Status NoWeights(const VersionPath& version);

// Returns the names, sizes, modification times and inode numbers of the
// version's files, or "" if there are no files. The string changes whenever a
// file, or the target of a link to a file, is written or replaced.
std::string Fingerprint(const VersionPath& version);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_VERSION_FILES_H_
