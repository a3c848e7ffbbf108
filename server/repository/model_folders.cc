#include "server/repository/model_folders.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/repository/model_directory.h"
#include "server/repository/model_name.h"
#include "server/repository/version_policy.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

// The sorted names of the entries of `path`.
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
  std::sort(names.begin(), names.end());
  return names;
}

// Whether `path` ends at a folder inside `root`, which is canonical.
bool IsFolderInside(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return !error && absl::StartsWith(real.string(), root.string() + "/") &&
         fs::is_directory(real, error);
}

}  // namespace

VersionFolder LookAtVersion(const VersionPath& path, bool random_init) {
  return {path, Fingerprint(path), LooksComplete(path, random_init)};
}

ModelFolder LookAtModel(const std::string& repository, const std::string& id,
                        bool random_init) {
  ModelFolder found;
  std::error_code error;
  const fs::path root = fs::canonical(repository, error);
  if (error || !IsId(id) || !IsFolderInside(root, root / id)) return found;
  const fs::path model = fs::canonical(root / id, error);
  const absl::StatusOr<std::vector<std::string>> names = Entries(model);
  if (!names.ok()) return found;
  for (const std::string& name : *names) {
    const int64_t number = VersionNumber(name);
    const fs::path folder = root / id / name;
    if (number == 0 || !IsFolderInside(root, folder) ||
        (!fs::exists(folder / kConfigFile, error) &&
         !fs::exists(folder / kHuggingFaceFile, error))) {
      continue;
    }
    found.versions[number] =
        LookAtVersion({folder.string(), root.string()}, random_init);
  }
  if (!found.versions.empty()) found.policy = ReadVersionPolicy(model.string());
  return found;
}

absl::StatusOr<std::map<std::string, ModelFolder>> LookAtModels(
    const std::string& repository, bool random_init) {
  std::error_code error;
  const fs::path root = fs::canonical(repository, error);
  if (error || !fs::is_directory(root, error)) {
    return absl::NotFoundError(
        absl::StrCat("model repository: there is no folder ", repository));
  }
  const absl::StatusOr<std::vector<std::string>> names = Entries(root);
  if (!names.ok()) return names.status();
  std::map<std::string, ModelFolder> models;
  for (const std::string& id : *names) {
    ModelFolder model = LookAtModel(root.string(), id, random_init);
    if (!model.versions.empty()) models.emplace(id, std::move(model));
  }
  // What went away meanwhile would look like a folder without models.
  const absl::Status still_there = Entries(root).status();
  if (!still_there.ok()) return still_there;
  return models;
}

}  // namespace sfmamba::repository
