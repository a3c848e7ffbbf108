#include "server/repository/version_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "nlohmann/json.hpp"
#include "server/repository/json_text.h"
#include "server/settings/textproto.h"

namespace sfmamba::repository {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxIndexBytes = 10'000'000;
constexpr size_t kMaxShards = 1000;

// Returns the sorted names of files in the folder that contain weights but have
// a name that the server does not read.
std::vector<std::string> OtherWeights(const VersionPath& version) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(version.folder, error), end;
       !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    for (const char* suffix : {".safetensors", ".bin", ".bin.index.json",
                               ".pth", ".tar", ".pt", ".ckpt", ".onnx"}) {
      if (absl::EndsWith(name, suffix) && base::Utf8Length(name) > 0) {
        names.push_back(name);
        break;
      }
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns why the file cannot be used as weights, and what the user should do.
std::string Advice(const std::string& name) {
  if (absl::StartsWith(name, "adapter_model.")) {
    return "is an adapter, expected the whole model: merge it into its base "
           "model and save that";
  }
  if (absl::EndsWith(name, ".safetensors")) {
    return absl::StrCat("has another name: expected ", kWeightsFile,
                        ", or shards with ", kShardsFile);
  }
  if (absl::EndsWith(name, ".onnx")) {
    return absl::StrCat("is not served: expected ", kWeightsFile);
  }
  return "is a pickle, which tools/convert_checkpoint.py converts";
}

// Returns true if `path` exists and no link between `root` and `path` leads
// outside `root`.
bool StaysBeneath(const std::string& root, const fs::path& path) {
  const int folder = open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const int end =
      syscall(SYS_openat2, folder, path.lexically_relative(root).c_str(), &how,
              sizeof(how));
  if (end >= 0) close(end);
  if (folder >= 0) close(folder);
  return end >= 0;
}

// Returns a word for an error, such as "a folder". `type` is the type of
// something that exists and is not a regular file.
absl::string_view KindOf(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "a device";
  }
}

// Sets `path` to the path of the version's file `name`. Leaves `path` unchanged
// if there is no such file.
absl::Status FindOptional(const VersionPath& version, const char* name,
                          std::string* path) {
  absl::StatusOr<std::string> found = FindFile(version, name);
  if (found.ok()) {
    *path = *std::move(found);
  } else if (!absl::IsNotFound(found.status())) {
    return found.status();
  }
  return absl::OkStatus();
}

// Returns the names of the shards that the index file at `path` lists.
absl::StatusOr<std::set<std::string>> ReadShardNames(const std::string& path) {
  const absl::StatusOr<std::string> text =
      server::ReadTextFile(kShardsFile, path, kMaxIndexBytes);
  if (!text.ok()) return text.status();
  // Drops arrays and deeply nested values while parsing. Such values may need
  // up to 60 times their size in memory, and a valid index contains none.
  using nlohmann::json;
  const json index = json::parse(
      *text,
      [](int depth, json::parse_event_t event, const json& /*value*/) {
        return depth <= 2 && event != json::parse_event_t::array_start;
      },
      /*allow_exceptions=*/false);
  const auto refuse = [](absl::string_view expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(kShardsFile, ": expected ", expected));
  };
  if (!index.is_object()) {
    const absl::Status status = CheckJsonObject(kShardsFile, *text);
    if (!status.ok()) return status;
  }
  if (!index.contains("weight_map") || !index["weight_map"].is_object()) {
    return refuse("an object with a weight_map");
  }
  std::set<std::string> names;
  for (const auto& name : index["weight_map"]) {
    if (!name.is_string()) return refuse("file names in weight_map");
    names.insert(name.get<std::string>());
    if (names.size() > kMaxShards) {
      return refuse(absl::StrCat("at most ", kMaxShards, " files"));
    }
  }
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, ".safetensors") || absl::StrContains(name, '/') ||
        absl::StartsWith(name, ".")) {
      return refuse("names of .safetensors files beside it in weight_map");
    }
  }
  if (names.empty()) return refuse("at least one file in weight_map");
  return names;
}

absl::Status FindWeights(const VersionPath& version, VersionFiles* files) {
  std::string path;
  absl::Status status = FindOptional(version, kWeightsFile, &path);
  if (!status.ok()) return status;
  if (!path.empty()) {
    files->weights.push_back(std::move(path));
    return absl::OkStatus();
  }
  status = FindOptional(version, kShardsFile, &path);
  if (!status.ok() || path.empty()) return status;
  const absl::StatusOr<std::set<std::string>> names = ReadShardNames(path);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    absl::StatusOr<std::string> shard = FindFile(version, name);
    if (!shard.ok()) return shard.status();
    files->weights.push_back(*std::move(shard));
  }
  return absl::OkStatus();
}

void AddFile(const fs::path& folder, const std::string& name, std::string* to) {
  struct stat found = {};
  if (stat((folder / name).c_str(), &found) != 0) return;
  absl::StrAppend(to, name, " ", found.st_size, " ", found.st_ino, " ",
                  found.st_mtim.tv_sec, ".", found.st_mtim.tv_nsec, "\n");
}

}  // namespace

absl::StatusOr<std::string> FollowLinks(const std::string& root,
                                        const std::string& path) {
  std::error_code error;
  fs::path end = fs::canonical(path, error);
  // `end` is `path` with all links followed. If `path` goes through
  // /proc/<pid>/root, its target is in the file system of another container,
  // and `end` is the path of the target in that file system. In this process,
  // the path `end` may name another file or nothing. `end` is therefore used
  // only if it names the same file as `path`.
  const bool is_there = fs::exists(path, error);
  const bool is_same = is_there && fs::equivalent(end, path, error);
  if (!is_there) return absl::NotFoundError("there is nothing");
  if (!is_same) end = fs::absolute(path);
  const bool is_inside =
      root.empty() ||
      (is_same ? absl::StartsWith(end.string(), absl::StrCat(root, "/"))
               : StaysBeneath(root, end));
  if (is_inside) return end.string();
  return absl::InvalidArgumentError("lies outside the model repository");
}

absl::StatusOr<std::string> FindFile(const VersionPath& version,
                                     const std::string& name) {
  std::error_code error;
  absl::StatusOr<std::string> file =
      FollowLinks(version.root, fs::path(version.folder) / name);
  if (absl::IsInvalidArgument(file.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": ", file.status().message()));
  }
  const fs::file_type type =
      file.ok() ? fs::status(*file, error).type() : fs::file_type::not_found;
  if (type == fs::file_type::regular) return file;
  if (type == fs::file_type::not_found || type == fs::file_type::none) {
    return absl::NotFoundError(absl::StrCat(name, ": there is no such file"));
  }
  // The file is not opened, because opening a FIFO waits for a writer.
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": got ", KindOf(type), ", expected a file"));
}

absl::StatusOr<VersionFiles> FindVersionFiles(const VersionPath& version) {
  VersionFiles files;
  absl::Status status = FindOptional(version, kConfigFile, &files.config);
  status.Update(FindOptional(version, kHuggingFaceFile, &files.hugging_face));
  status.Update(FindOptional(version, kPreprocessorFile, &files.preprocessor));
  status.Update(FindOptional(version, kLabelsFile, &files.labels));
  if (status.ok()) status = FindWeights(version, &files);
  if (!status.ok()) return status;
  if (files.config.empty() && files.hugging_face.empty()) {
    const std::string missing = absl::StrCat(
        kConfigFile, ": there is no such file, and no ", kHuggingFaceFile);
    return files.weights.empty() && !OtherWeights(version).empty()
               ? absl::NotFoundError(
                     absl::StrCat(missing, "; ", NoWeights(version).message()))
               : absl::NotFoundError(missing);
  }
  for (const std::string& path : files.weights) {
    std::error_code error;
    files.weights_size += static_cast<int64_t>(fs::file_size(path, error));
  }
  if (files.weights.empty() && !files.hugging_face.empty() &&
      !OtherWeights(version).empty()) {
    return NoWeights(version);
  }
  return files;
}

absl::Status NoWeights(const VersionPath& version) {
  const std::string missing =
      absl::StrCat(kWeightsFile, ": there is no such file");
  const std::vector<std::string> others = OtherWeights(version);
  if (others.empty()) return absl::NotFoundError(missing);
  return absl::NotFoundError(
      absl::StrCat(missing, "; ", others[0], " ", Advice(others[0])));
}

std::string Fingerprint(const VersionPath& version) {
  std::string text;
  std::set<std::string> names = {
      kConfigFile,  kHuggingFaceFile, kLabelsFile, kPreprocessorFile,
      kWeightsFile, kShardsFile,      kGoldenFile};
  const absl::StatusOr<std::string> index = FindFile(version, kShardsFile);
  if (index.ok()) {
    const absl::StatusOr<std::set<std::string>> shards = ReadShardNames(*index);
    if (shards.ok()) names.insert(shards->begin(), shards->end());
  }
  for (const std::string& name : names) AddFile(version.folder, name, &text);
  return text;
}

}  // namespace sfmamba::repository
