#ifndef SFMAMBA_SERVER_REPOSITORY_MODEL_FOLDERS_H_
#define SFMAMBA_SERVER_REPOSITORY_MODEL_FOLDERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/repository/version_files.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::repository {

// A snapshot of a version's folder. The folder contains config.textproto or
// config.json.
struct VersionFolder {
  VersionPath path;
  // The names, sizes, modification times and inode numbers of the folder's
  // files. The text changes whenever a file is written or replaced.
  std::string fingerprint;
  // True if all files exist and the weights have the size in the configuration.
  // If false, somebody may still be writing the files.
  bool complete = false;
};

// The content of a model's folder, <repository>/<id>.
struct ModelFolder {
  std::map<int64_t, VersionFolder> versions;
  // The content of policy.textproto, or the error of reading it.
  absl::StatusOr<v1::VersionPolicy> policy = v1::VersionPolicy();
  // The folders that look like versions but are not served. Maps the name of
  // each folder to the reason.
  std::map<std::string, std::string> left_out;
};

struct RepositoryFolders {
  // The models that have at least one version, by id.
  std::map<std::string, ModelFolder> models;
  // The folders that look like models or versions but are not served. Maps the
  // path of each folder, relative to the repository, to the reason. Such a
  // folder contains a version's files but has no valid name, or it is a link
  // whose target is missing or outside the repository. Hidden folders are not
  // included.
  std::map<std::string, std::string> left_out;
};

// Reads the state of one version's folder. If `random_init` is true, a complete
// folder needs neither weights nor labels.
VersionFolder LookAtVersion(const VersionPath& path, bool random_init);

// Reads the state of the folder of model `id` in `repository`. Links are
// followed, and their targets must be inside `repository`. Returns an empty
// result if the folder does not exist.
ModelFolder LookAtModel(const std::string& repository, const std::string& id,
                        bool random_init);

// Reads the state of the folders of all models. Returns NOT_FOUND if
// `repository` cannot be read.
absl::StatusOr<RepositoryFolders> LookAtModels(const std::string& repository,
                                               bool random_init);

}  // namespace sfmamba::repository

#endif  // SFMAMBA_SERVER_REPOSITORY_MODEL_FOLDERS_H_
