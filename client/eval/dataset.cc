#include "client/eval/dataset.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/inputs.h"
#include "client/eval/coco_layout.h"

namespace sfmamba::client {
namespace {

using std::filesystem::path;

constexpr char kImages[] = "images";
constexpr char kMaps[] = "maps";

// Returns the folders or the pictures in `folder`, sorted by name, without
// hidden ones. Returns an empty list if `folder` cannot be read.
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
  const absl::StatusOr<CocoLayout> layout = FindCocoLayout(folder);
  if (!layout.ok()) return layout.status();
  const path coco = layout->annotations;
  const bool maps = std::filesystem::is_directory(root / kMaps, error);
  if (!coco.empty() && maps && task == v1::Model::TASK_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": both ", coco.filename().string(), " and ",
                     kMaps, "/; name a model"));
  }
  if (!coco.empty() && (!maps || task == v1::Model::DETECTION)) {
    return ReadCocoDataset(layout->annotations, layout->pictures);
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
