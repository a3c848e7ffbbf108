#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_FOLDERS_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_FOLDERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/repository/version_files.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// One version's folder as it was when it was looked at. It has a
// config.textproto or a config.json.
struct VersionFolder {
  VersionPath path;
  // Names, sizes, times and inodes of the folder's files. It differs whenever
  // one of them has been written or replaced.
  std::string fingerprint;
  // Whether all files are there and the weights have the size that the
  // configuration says. Otherwise somebody may still be writing them.
  bool complete = false;
};

// A model's folder, <repository>/<id>.
struct ModelFolder {
  std::map<int64_t, VersionFolder> versions;
  // What policy.textproto says, or why it cannot be read.
  absl::StatusOr<v1::VersionPolicy> policy = v1::VersionPolicy();
  // Folders that were meant as versions and are left out, by name, and why.
  std::map<std::string, std::string> left_out;
};

struct RepositoryFolders {
  // The models that have a version, by id.
  std::map<std::string, ModelFolder> models;
  // Folders that were meant as models or versions and are left out, by their
  // path in the repository, and why: what has files of a version and no usable
  // name, and links that end nowhere or outside. Hidden ones are not reported.
  std::map<std::string, std::string> left_out;
};

// Looks at one version's folder. With `random_init` the weights and the labels
// may be missing.
VersionFolder LookAtVersion(const VersionPath& path, bool random_init);

// Looks at the folder of model `id` in `repository`. Links are followed: a
// folder or file counts as where its path ends, which must be inside
// `repository`. Empty if there is no such folder.
ModelFolder LookAtModel(const std::string& repository, const std::string& id,
                        bool random_init);

// Looks at all models. NOT_FOUND if `repository` cannot be read.
absl::StatusOr<RepositoryFolders> LookAtModels(const std::string& repository,
                                               bool random_init);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_FOLDERS_H_
