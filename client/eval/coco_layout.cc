#include "client/eval/coco_layout.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/commands/inputs.h"
#include "client/eval/coco_json.h"

namespace sfmamba::client {
namespace {

using std::filesystem::path;

constexpr char kImages[] = "images";
constexpr char kInstances[] = "instances_";

enum class Part { kOther, kTraining, kValidation, kTest };

constexpr std::pair<const char*, Part> kParts[] = {
    {"train", Part::kTraining},        {"training", Part::kTraining},
    {"val", Part::kValidation},        {"valid", Part::kValidation},
    {"validation", Part::kValidation}, {"test", Part::kTest},
    {"testing", Part::kTest}};

// Returns the part of a dataset that a name indicates, for example training for
// "instances_train2017" and validation for "valid".
Part PartOf(const path& name) {
  std::set<Part> found;
  std::string word;
  for (const char c : absl::StrCat(name.string(), ".")) {
    if (absl::ascii_isalpha(c)) {
      word += absl::ascii_tolower(c);
      continue;
    }
    for (const auto& [known, part] : kParts) {
      if (word == known) found.insert(part);
    }
    word.clear();
  }
  return found.size() == 1 ? *found.begin() : Part::kOther;
}

// Returns the folders or the JSON files in `folder`, sorted by name, without
// hidden ones and __MACOSX. Returns an empty list if `folder` cannot be read.
std::vector<path> Entries(const path& folder, bool folders) {
  std::vector<path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, ".") || absl::StartsWith(name, "__")) continue;
    if (folders
            ? entry.is_directory(error)
            : entry.is_regular_file(error) && absl::EndsWith(name, ".json")) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Returns true if the file contains the lists "images", "annotations" and
// "categories" of COCO's format. The file's name does not matter.
bool IsCoco(const path& file) {
  const absl::StatusOr<std::string> text = ReadFile(file.string());
  if (!text.ok()) return false;
  const absl::StatusOr<CocoJson> root = CocoJson::Parse("", *text);
  return root.ok() && root->Has("images") && root->Has("annotations") &&
         root->Has("categories");
}

// Returns the files with annotations in `folder`. If the names of some begin
// with "instances_", returns only these files. Other annotations, for example
// captions, are then ignored.
std::vector<path> AnnotationsIn(const path& folder) {
  std::vector<path> files = Entries(folder, /*folders=*/false);
  const auto is_instances = [](const path& file) {
    return absl::StartsWith(file.filename().string(), kInstances);
  };
  const bool has_instances =
      std::any_of(files.begin(), files.end(), is_instances);
  const auto is_other = [&](const path& file) {
    if (has_instances) return !is_instances(file);
    const std::string name = file.filename().string();
    return name != "annotations.json" && name != "result.json" &&
           name != "_annotations.coco.json" && !IsCoco(file);
  };
  files.erase(std::remove_if(files.begin(), files.end(), is_other),
              files.end());
  return files;
}

std::vector<std::string> PictureFolders(const path& annotations,
                                        const path& root) {
  const path here = annotations.parent_path();
  const std::string stem = annotations.stem().string();
  std::vector<path> all, others;
  if (absl::StartsWith(stem, kInstances)) {
    const std::string split = stem.substr(sizeof(kInstances) - 1);
    all = {root / split, root / kImages / split, root / split / kImages};
  }
  all.insert(all.end(), {here / kImages, here, root / kImages, root});
  Part part = PartOf(stem);
  if (part == Part::kOther) part = PartOf(here.filename());
  for (const path& parent : {root, root / kImages}) {
    for (const path& folder : Entries(parent, /*folders=*/true)) {
      const path name = folder.filename();
      if (PartOf(name) != Part::kOther) {
        if (PartOf(name) == part) all.push_back(folder);
      } else if (name != kImages && name != "maps") {
        others.push_back(folder);
      }
    }
  }
  all.insert(all.end(), others.begin(), others.end());
  std::vector<std::string> there;
  std::error_code error;
  for (const path& one : all) {
    if (std::filesystem::is_directory(one, error)) {
      there.push_back(one.string());
    }
  }
  return there;
}

}  // namespace

absl::StatusOr<CocoLayout> FindCocoLayout(const std::string& folder) {
  const path root = folder;
  std::map<Part, std::vector<path>> found;
  for (const path& file : AnnotationsIn(root)) {
    found[PartOf(file.stem())].push_back(file);
  }
  for (const path& sub : Entries(root, /*folders=*/true)) {
    const Part its = PartOf(sub.filename());
    if (its == Part::kOther &&
        absl::AsciiStrToLower(sub.filename().string()) != "annotations") {
      continue;
    }
    for (const path& file : AnnotationsIn(sub)) {
      const Part part = PartOf(file.stem());
      found[part == Part::kOther ? its : part].push_back(file);
    }
  }
  std::vector<path>& learnt = found[Part::kTraining];
  const std::vector<path>& other = found[Part::kOther];
  learnt.insert(learnt.end(), other.begin(), other.end());
  for (const Part part : {Part::kValidation, Part::kTest, Part::kTraining}) {
    const std::vector<path>& files = found[part];
    if (files.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          folder, ": ", files[0].string(), " and ", files[1].string(),
          " are both annotations to read: choose by --annotations FILE "
          "--images DIR"));
    }
    if (files.size() == 1) {
      return CocoLayout{files[0].string(), PictureFolders(files[0], root)};
    }
  }
  return CocoLayout();
}

}  // namespace sfmamba::client
