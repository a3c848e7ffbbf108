#include "client/eval/dataset.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/inputs.h"

namespace sfmamba::client {
namespace {

using std::filesystem::path;

constexpr char kImages[] = "images";
constexpr char kMaps[] = "maps";

// The folders or the pictures in `folder`, by name, without hidden ones. Empty
// if it cannot be read.
std::vector<path> Entries(const path& folder, bool folders) {
  std::vector<path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const path& file = entry.path();
    const bool hidden = absl::StartsWith(file.filename().string(), ".");
    if (folders ? entry.is_directory(error) && !hidden : IsPictureFile(file)) {
      found.push_back(file);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The files of `folder` whose names begin so, by name.
std::vector<path> FilesWithPrefix(const path& folder,
                                  const std::string& prefix) {
  std::vector<path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, prefix) && absl::EndsWith(name, ".json")) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The annotations in COCO's format that labelling tools write into `folder`. A
// held-out part comes before one for training. Empty if there are none.
path FindCoco(const path& folder) {
  constexpr const char* kNames[] = {"annotations.json",
                                    "_annotations.coco.json",  // Roboflow.
                                    "result.json"};            // Label Studio.
  std::error_code error;
  for (const path part : {"", "valid", "val", "validation", "test"}) {
    for (const char* name : kNames) {
      const path file = folder / part / name;
      if (std::filesystem::is_regular_file(file, error)) return file;
    }
    if (!part.empty()) continue;
    for (const char* split :
         {"instances_val", "instances_test", "instances_"}) {
      const std::vector<path> files =  // COCO and CVAT.
          FilesWithPrefix(folder / "annotations", split);
      if (!files.empty()) return files.front();
    }
  }
  return path();
}

// The folders that may have the pictures of `annotations`, which FindCoco() has
// found in `folder`; the likeliest first.
std::vector<std::string> PictureFolders(const path& annotations,
                                        const path& folder) {
  const path here = annotations.parent_path();
  std::string split = annotations.stem().string();
  std::vector<path> all = {here / kImages, here, folder / kImages, folder};
  constexpr char kPrefix[] = "instances_";
  if (absl::StartsWith(split, kPrefix)) {
    split = split.substr(sizeof(kPrefix) - 1);
    all.insert(all.begin(), {folder / split, folder / kImages / split});
  }
  std::vector<std::string> there;
  std::error_code error;
  for (const path& one : all) {
    if (std::filesystem::is_directory(one, error))
      there.push_back(one.string());
  }
  return there;
}

absl::StatusOr<Dataset> ReadSegmentation(const path& folder) {
  Dataset dataset;
  dataset.task = v1::Model::SEGMENTATION;
  for (const path& picture : Entries(folder / kImages, /*folders=*/false)) {
    Dataset::Sample sample;
    sample.picture = picture.string();
    sample.map =
        (folder / kMaps / picture.stem()).replace_extension(".png").string();
    if (!std::filesystem::exists(sample.map)) {
      return absl::NotFoundError(
          absl::StrCat(picture.string(), ": no map ", sample.map));
    }
    dataset.samples.push_back(std::move(sample));
  }
  return dataset;
}

absl::StatusOr<Dataset> ReadClassification(const path& folder) {
  Dataset dataset;
  dataset.task = v1::Model::CLASSIFICATION;
  for (const path& label : Entries(folder, /*folders=*/true)) {
    for (const path& picture : Entries(label, /*folders=*/false)) {
      Dataset::Sample sample;
      sample.picture = picture.string();
      sample.label = label.filename().string();
      dataset.classes[sample.label] = 0;
      dataset.samples.push_back(std::move(sample));
    }
  }
  return dataset;
}

Dataset ReadPictures(const path& folder, v1::Model::Task task) {
  Dataset dataset;
  dataset.task = task;
  dataset.labelled = false;
  for (const path& picture : Entries(folder, /*folders=*/false)) {
    Dataset::Sample sample;
    sample.picture = picture.string();
    dataset.samples.push_back(std::move(sample));
  }
  return dataset;
}

}  // namespace

absl::StatusOr<Dataset> ReadCocoDataset(
    const std::string& annotations, const std::vector<std::string>& folders) {
  absl::StatusOr<CocoFile> file = ReadCocoFile(annotations, folders);
  if (!file.ok()) return file.status();
  Dataset dataset;
  dataset.task = v1::Model::DETECTION;
  dataset.left_out = std::move(file->left_out);
  for (CocoPicture& picture : file->pictures) {
    Dataset::Sample sample;
    sample.picture = picture.path;
    sample.coco = std::move(picture);
    dataset.samples.push_back(std::move(sample));
  }
  for (const CocoCategory& category : file->categories) {
    dataset.classes[category.name] = category.id;
  }
  if (dataset.samples.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(annotations, ": no pictures"));
  }
  return dataset;
}

absl::StatusOr<Dataset> ReadDataset(const std::string& folder,
                                    v1::Model::Task task) {
  const path root = folder;
  std::error_code error;
  if (!std::filesystem::is_directory(root, error)) {
    return absl::NotFoundError(absl::StrCat(folder, ": no such folder"));
  }
  const path coco = FindCoco(root);
  const bool maps = std::filesystem::is_directory(root / kMaps, error);
  if (!coco.empty() && maps && task == v1::Model::TASK_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": both ", coco.filename().string(), " and ",
                     kMaps, "/; name a model"));
  }
  if (!coco.empty() && (!maps || task == v1::Model::DETECTION)) {
    return ReadCocoDataset(coco.string(), PictureFolders(coco, root));
  }
  absl::StatusOr<Dataset> dataset =
      maps ? ReadSegmentation(root) : ReadClassification(root);
  if (!maps && dataset->samples.empty()) dataset = ReadPictures(root, task);
  if (dataset.ok() && dataset->samples.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder,
        ": no pictures; expected annotations.json and images/, images/ and "
        "maps/, or a folder for each class"));
  }
  return dataset;
}

}  // namespace sfmamba::client
