#include "client/eval/dataset.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/inputs.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"

namespace sfmamba::client {
namespace {

using std::filesystem::path;

constexpr char kAnnotations[] = "annotations.json";
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

// ---- Detection ----

// A member of a JSON object, as what it should be.
struct Member {
  const google::protobuf::Struct& object;
  std::string where;  // "images[3]"

  absl::StatusOr<const google::protobuf::Value*> Find(
      const std::string& key, google::protobuf::Value::KindCase kind) const {
    const auto it = object.fields().find(key);
    if (it != object.fields().end() && it->second.kind_case() == kind) {
      return &it->second;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        kAnnotations, ": ", where, where.empty() ? "" : ".", key,
        it == object.fields().end() ? ": missing" : ": of the wrong type"));
  }
};

// An element of "images" or "categories": its id and its name.
struct Named {
  int64_t id;
  std::string name;
};

absl::StatusOr<std::vector<Named>> ReadNamed(
    const google::protobuf::Struct& root, const std::string& list,
    const std::string& name_key) {
  using google::protobuf::Value;
  const auto values = Member{root, ""}.Find(list, Value::kListValue);
  if (!values.ok()) return values.status();
  std::vector<Named> all;
  for (const Value& value : (*values)->list_value().values()) {
    const Member element{value.struct_value(),
                         absl::StrCat(list, "[", all.size(), "]")};
    const auto id = element.Find("id", Value::kNumberValue);
    if (!id.ok()) return id.status();
    const auto name = element.Find(name_key, Value::kStringValue);
    if (!name.ok()) return name.status();
    all.push_back(
        {static_cast<int64_t>((*id)->number_value()), (*name)->string_value()});
  }
  return all;
}

absl::StatusOr<Dataset> ReadDetection(const path& folder) {
  const absl::StatusOr<std::string> text =
      ReadFile((folder / kAnnotations).string());
  if (!text.ok()) return text.status();
  google::protobuf::Struct root;
  const auto parsed = google::protobuf::util::JsonStringToMessage(*text, &root);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kAnnotations, ": not a JSON object: ", parsed.ToString()));
  }
  const auto images = ReadNamed(root, "images", "file_name");
  if (!images.ok()) return images.status();
  const auto categories = ReadNamed(root, "categories", "name");
  if (!categories.ok()) return categories.status();

  Dataset dataset;
  dataset.task = v1::Model::DETECTION;
  for (const Named& category : *categories) {
    dataset.classes[category.name] = category.id;
  }
  for (const Named& image : *images) {
    Dataset::Sample sample;
    sample.picture = (folder / kImages / image.name).string();
    sample.image_id = image.id;
    dataset.samples.push_back(std::move(sample));
  }
  return dataset;
}

// ---- The others ----

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

}  // namespace

absl::StatusOr<Dataset> ReadDataset(const std::string& folder,
                                    v1::Model::Task task) {
  const path root = folder;
  std::error_code error;
  if (!std::filesystem::is_directory(root, error)) {
    return absl::NotFoundError(absl::StrCat(folder, ": no such folder"));
  }
  bool detection = std::filesystem::exists(root / kAnnotations, error);
  bool segmentation = std::filesystem::is_directory(root / kMaps, error);
  if (detection && segmentation) {
    if (task == v1::Model::TASK_UNSPECIFIED) {
      return absl::InvalidArgumentError(absl::StrCat(
          folder, ": both ", kAnnotations, " and ", kMaps, "/; name a model"));
    }
    detection = task == v1::Model::DETECTION;
    segmentation = !detection;
  }
  absl::StatusOr<Dataset> dataset = detection      ? ReadDetection(root)
                                    : segmentation ? ReadSegmentation(root)
                                                   : ReadClassification(root);
  if (dataset.ok() && dataset->samples.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder,
        ": no pictures; expected annotations.json and images/, images/ and "
        "maps/, or a folder for each class"));
  }
  return dataset;
}

}  // namespace sfmamba::client
