#include "server/repository/model_folders.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_name.h"
#include "server/repository/version_policy.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

// Returns the names of the entries in the folder `path`. Returns NOT_FOUND if
// the folder cannot be read.
absl::StatusOr<std::vector<std::string>> Entries(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(path, error);
  for (const fs::directory_iterator end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat("model repository: ", path.string(),
                                            ": ", error.message(),
                                            ", expected a folder"));
  }
  return names;
}

// Follows all links in `path` and returns the path of the target folder.
// Returns NOT_FOUND if `path` is not a folder. Returns INVALID_ARGUMENT if a
// link has no target or the folder is outside `root`.
absl::StatusOr<std::string> FollowFolder(const std::string& root,
                                         const fs::path& path) {
  std::error_code error;
  const absl::StatusOr<std::string> end = FollowLinks(root, path);
  if (absl::IsNotFound(end.status()) && fs::is_symlink(path, error)) {
    return absl::InvalidArgumentError("is a link to a missing target");
  }
  // The callers look only for folders, so a link to a file is not an error. It
  // gives NOT_FOUND, which the callers ignore. This is also true if the file is
  // outside `root`. `end` would then be INVALID_ARGUMENT, which the callers
  // report.
  if (!fs::is_directory(path, error)) return absl::NotFoundError("no folder");
  return end;
}

bool HasConfig(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kConfigFile, error) ||
         fs::exists(folder / kHuggingFaceFile, error);
}

// Returns true for names such as "2.new". A folder with this name is still
// being written. When the folder is complete, it is renamed to the version
// number.
bool IsWorkingName(const std::string& entry) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(entry, absl::MaxSplits('.', 1));
  return VersionNumber(parts.first) != 0 && !parts.second.empty() &&
         !absl::ascii_isdigit(parts.second[0]);
}

// Reads the state of the model folder `name` in `root`. `name` need not be a
// valid model id.
ModelFolder LookAtFolder(const std::string& root, const std::string& name,
                         bool random_init) {
  ModelFolder found;
  const fs::path model = fs::path(root) / name;
  const absl::StatusOr<std::vector<std::string>> entries = Entries(model);
  if (!entries.ok()) return found;
  for (const std::string& entry : *entries) {
    const int64_t number = VersionNumber(entry);
    const fs::path folder = model / entry;
    const absl::Status status = FollowFolder(root, folder).status();
    if (absl::IsInvalidArgument(status) && number != 0) {
      found.left_out[entry] = std::string(status.message());
    }
    if (!status.ok() || !HasConfig(folder)) continue;
    if (number != 0) {
      found.versions[number] =
          LookAtVersion({folder.string(), root}, random_init);
    } else if (!absl::StartsWith(entry, ".") && !IsWorkingName(entry)) {
      found.left_out[entry] =
          "is no version, expected a number of 1 or more without leading zeros";
    }
  }
  if (!found.versions.empty()) {
    found.policy = ReadVersionPolicy({model.string(), root});
  }
  return found;
}

}  // namespace

VersionFolder LookAtVersion(const VersionPath& path, bool random_init) {
  return {path, Fingerprint(path), LooksComplete(path, random_init)};
}

ModelFolder LookAtModel(const std::string& repository, const std::string& id,
                        bool random_init) {
  const absl::StatusOr<std::string> root = FollowLinks("", repository);
  if (!root.ok() || !IsId(id) ||
      !FollowFolder(*root, fs::path(*root) / id).ok()) {
    return ModelFolder();
  }
  return LookAtFolder(*root, id, random_init);
}

absl::StatusOr<RepositoryFolders> LookAtModels(const std::string& repository,
                                               bool random_init) {
  std::error_code error;
  const absl::StatusOr<std::string> root = FollowLinks("", repository);
  if (!root.ok() || !fs::is_directory(*root, error)) {
    return absl::NotFoundError(
        absl::StrCat("model repository: there is no folder ", repository));
  }
  const absl::StatusOr<std::vector<std::string>> names = Entries(*root);
  if (!names.ok()) return names.status();
  RepositoryFolders found;
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, ".")) continue;
    const fs::path path = fs::path(*root) / name;
    const absl::Status status = FollowFolder(*root, path).status();
    if (absl::IsInvalidArgument(status)) {
      found.left_out[name] = std::string(status.message());
    }
    if (!status.ok()) continue;
    ModelFolder model = LookAtFolder(*root, name, random_init);
    if (!model.versions.empty() && !IsId(name)) {
      found.left_out[name] =
          "is no name of a model, expected [A-Za-z0-9][A-Za-z0-9._-]{0,127}";
      continue;
    }
    for (const auto& [entry, why] : model.left_out) {
      found.left_out[absl::StrCat(name, "/", entry)] = why;
    }
    if (model.versions.empty() && HasConfig(path)) {
      found.left_out[name] = "has files of a version, expected a folder " +
                             name + "/1 that has them";
    }
    if (!model.versions.empty()) found.models.emplace(name, std::move(model));
  }
  // Checks that the repository still exists. If it disappeared during the scan,
  // the result would look like a repository without models.
  const absl::Status still_there = Entries(*root).status();
  if (!still_there.ok()) return still_there;
  return found;
}

}  // namespace sfmamba::repository
