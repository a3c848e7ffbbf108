#include "client/eval/coco_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/image_header.h"
#include "base/orientation.h"
#include "client/commands/inputs.h"
#include "client/eval/coco_json.h"
#include "client/eval/coco_segmentation.h"
#include "client/picture/picture.h"

namespace sfmamba::client {
namespace {

using std::filesystem::path;

// In pixels. A box that is clipped by less than this is not counted as clipped.
constexpr double kRounding = 0.5;

struct Counts {
  int clipped = 0, outside = 0, polygons = 0, crowds = 0;
  int masks = 0, without_mask = 0;  // Count objects that are not crowds.
};

std::string Counted(int count, absl::string_view one, absl::string_view many) {
  return absl::StrCat(count, " ", count == 1 ? one : many);
}

// Returns the last folder's name in a path, for example "images" of
// "data/images/".
path NameOfFolder(const path& folder) {
  const path whole = std::filesystem::absolute(folder).lexically_normal();
  return whole.has_filename() ? whole.filename()
                              : whole.parent_path().filename();
}

// Returns the path of the picture `file_name` in the first of `folders` that
// contains it. If no folder contains it, returns its path in the first folder.
// Returns INVALID_ARGUMENT if `file_name` is outside the folders, for example
// "../x.jpg".
absl::StatusOr<std::string> PicturePath(
    const std::string& file_name, const std::vector<std::string>& folders) {
  const std::string slashes = absl::StrReplaceAll(file_name, {{"\\", "/"}});
  // The second name also works if the file was written on Windows.
  for (const std::string& name : {file_name, slashes}) {
    const path below = path(name).lexically_normal();
    if (below.is_absolute() || !below.has_filename() || below == "." ||
        *below.begin() == "..") {
      return absl::InvalidArgumentError(absl::StrCat(
          "got '", file_name, "', expected a file below ", folders.front()));
    }
    for (const path folder : folders) {
      path inside = folder / below;
      std::error_code error;
      if (std::filesystem::exists(inside, error)) return inside.string();
      if (*below.begin() != NameOfFolder(folder)) continue;
      inside = folder / below.lexically_relative(*below.begin());
      if (std::filesystem::exists(inside, error)) return inside.string();
    }
  }
  return (path(folders.front()) / slashes).string();
}

// Reads one file of annotations.
class Reader {
 public:
  Reader(const std::string& file, const std::vector<std::string>& folders)
      : file_(path(file).filename().string()), folders_(folders) {}

  absl::StatusOr<CocoFile> Read(const std::string& text);

 private:
  absl::Status ReadPictures(const CocoJson& list);
  absl::Status ReadPicture(const CocoJson& entry);
  absl::Status ReadCategories(const CocoJson& list,
                              const std::set<int64_t>& used);
  absl::Status ReadAnnotation(const CocoJson& entry);
  absl::Status ReadMask(const CocoJson& entry, const CocoPicture& picture,
                        CocoObject* object);
  // Clips the box to the picture. Returns false if no part of the box is left.
  bool Clip(const CocoPicture& picture, CocoBox* box);
  std::string LeftOut() const;

  const std::string file_;
  const std::vector<std::string> folders_;
  CocoFile read_;
  std::map<int64_t, size_t> picture_of_;  // Index in read_.pictures, by id.
  std::set<int64_t> categories_;          // Ids of known categories.
  std::vector<std::string> parents_;      // Categories that were left out.
  Counts counts_;
};

absl::StatusOr<CocoFile> Reader::Read(const std::string& text) {
  const absl::StatusOr<CocoJson> root = CocoJson::Parse(file_, text);
  if (!root.ok()) return root.status();
  const absl::StatusOr<CocoJson> pictures = root->List("images");
  if (!pictures.ok()) return pictures.status();
  const absl::StatusOr<CocoJson> categories = root->List("categories");
  if (!categories.ok()) return categories.status();
  const absl::StatusOr<CocoJson> annotations = root->List("annotations");
  if (!annotations.ok()) return annotations.status();

  std::set<int64_t> used;
  for (size_t i = 0; i < annotations->size(); ++i) {
    const absl::StatusOr<int64_t> id = annotations->at(i).Whole("category_id");
    if (!id.ok()) return id.status();
    used.insert(*id);
  }
  absl::Status status = ReadPictures(*pictures);
  if (status.ok()) status = ReadCategories(*categories, used);
  for (size_t i = 0; status.ok() && i < annotations->size(); ++i) {
    status = ReadAnnotation(annotations->at(i));
  }
  if (!status.ok()) return status;
  read_.left_out = LeftOut();
  return std::move(read_);
}

absl::Status Reader::ReadPictures(const CocoJson& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    const absl::Status status = ReadPicture(list.at(i));
    if (!status.ok()) return status;
    const CocoPicture& picture = read_.pictures.back();
    const auto [first, is_new] = picture_of_.emplace(picture.id, i);
    if (!is_new) {
      return list.at(i).Error(absl::StrCat(
          "'", picture.path, "' has the id ", picture.id, ", which '",
          read_.pictures[first->second].path, "' has too"));
    }
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadPicture(const CocoJson& entry) {
  const absl::StatusOr<int64_t> id = entry.Whole("id");
  if (!id.ok()) return id.status();
  const absl::StatusOr<std::string> name = entry.Text("file_name");
  if (!name.ok()) return name.status();
  const absl::StatusOr<std::string> found = PicturePath(*name, folders_);
  if (!found.ok()) {
    return entry.Error(absl::StrCat("file_name: ", found.status().message()));
  }
  CocoPicture picture;
  picture.id = *id;
  picture.path = *found;
  if (entry.Has("width") && entry.Has("height")) {
    const absl::StatusOr<int> width = entry.Side("width");
    if (!width.ok()) return width.status();
    const absl::StatusOr<int> height = entry.Side("height");
    if (!height.ok()) return height.status();
    picture.width = *width;
    picture.height = *height;
  } else if (const auto bytes = ReadFile(picture.path); bytes.ok()) {
    if (const auto header = base::ReadImageHeader(*bytes, PictureLimits());
        header.ok()) {
      picture.width = header->width;
      picture.height = header->height;
      if (base::SwapsSides(header->orientation)) {
        std::swap(picture.width, picture.height);
      }
    }
  }
  read_.pictures.push_back(std::move(picture));
  return absl::OkStatus();
}

absl::Status Reader::ReadCategories(const CocoJson& list,
                                    const std::set<int64_t>& used) {
  struct Category {
    int64_t id;
    std::string name, parent;
  };
  std::vector<Category> all;
  for (size_t i = 0; i < list.size(); ++i) {
    const absl::StatusOr<int64_t> id = list.at(i).Whole("id");
    if (!id.ok()) return id.status();
    const absl::StatusOr<std::string> name = list.at(i).Text("name");
    if (!name.ok()) return name.status();
    const auto stripped = [](const std::string& text) {
      return std::string(absl::StripAsciiWhitespace(text));
    };
    all.push_back({*id, stripped(*name),
                   stripped(list.at(i).Text("supercategory").value_or(""))});
  }
  std::map<int64_t, std::string> names;
  std::map<std::string, int64_t> ids;
  for (size_t i = 0; i < all.size(); ++i) {
    const Category& category = all[i];
    const bool is_parent =
        std::any_of(all.begin(), all.end(), [&](const Category& other) {
          return &other != &category && other.parent == category.name;
        });
    if (is_parent && used.count(category.id) == 0) {
      parents_.push_back(category.name);
      continue;
    }
    const auto [id, new_id] = names.emplace(category.id, category.name);
    if (!new_id) {
      return list.at(i).Error(absl::StrCat("'", category.name, "' has the id ",
                                           category.id, ", which '", id->second,
                                           "' has too"));
    }
    const auto [name, new_name] = ids.emplace(category.name, category.id);
    if (!new_name) {
      return list.at(i).Error(
          absl::StrCat("id ", category.id, " has the name '", category.name,
                       "', which id ", name->second, " has too"));
    }
    read_.categories.push_back({category.id, category.name});
    categories_.insert(category.id);
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadAnnotation(const CocoJson& entry) {
  const absl::StatusOr<int64_t> image_id = entry.Whole("image_id");
  if (!image_id.ok()) return image_id.status();
  const auto found = picture_of_.find(*image_id);
  if (found == picture_of_.end()) {
    return entry.Error(
        absl::StrCat("image_id ", *image_id, " is not in \"images\""));
  }
  CocoObject object;
  object.category_id = *entry.Whole("category_id");
  if (categories_.count(object.category_id) == 0) {
    return entry.Error(absl::StrCat("category_id ", object.category_id,
                                    " is not in \"categories\""));
  }
  if (const auto crowd = entry.Get("iscrowd"); crowd.ok()) {
    const absl::StatusOr<bool> is_crowd = crowd->AsFlag();
    if (!is_crowd.ok()) return is_crowd.status();
    object.crowd = *is_crowd;
  }
  const absl::StatusOr<CocoJson> corners = entry.Get("bbox");
  if (!corners.ok()) return corners.status();
  const absl::StatusOr<std::vector<double>> box = corners->AsNumbers();
  if (!box.ok()) return box.status();
  if (box->size() != 4) {
    return corners->Error("expected x, y, width and height");
  }
  object.box = {(*box)[0], (*box)[1], (*box)[2], (*box)[3]};
  CocoPicture& picture = read_.pictures[found->second];
  const absl::Status status = ReadMask(entry, picture, &object);
  if (!status.ok()) return status;
  if (!Clip(picture, &object.box)) {
    ++counts_.outside;
    return absl::OkStatus();
  }
  const CocoBox& b = object.box;
  if (object.crowd && !object.mask && picture.width > 0) {
    object.mask = FromPolygon({b.x, b.y, b.x + b.width, b.y, b.x + b.width,
                               b.y + b.height, b.x, b.y + b.height},
                              picture.width, picture.height);
  }
  if (!object.crowd) ++(object.mask ? counts_.masks : counts_.without_mask);
  picture.objects.push_back(std::move(object));
  return absl::OkStatus();
}

absl::Status Reader::ReadMask(const CocoJson& entry, const CocoPicture& picture,
                              CocoObject* object) {
  absl::StatusOr<CocoSegmentation> mask =
      ReadSegmentation(entry, picture.width, picture.height);
  if (mask.ok()) {
    counts_.polygons += mask->short_polygons;
    object->mask = std::move(mask->mask);
    return absl::OkStatus();
  }
  if (!object->crowd) return mask.status();
  ++counts_.crowds;
  return absl::OkStatus();
}

bool Reader::Clip(const CocoPicture& picture, CocoBox* box) {
  const auto clip = [](double* begin, double* length, int side) {
    const double end = *begin + *length;
    const double first = std::max(*begin, 0.0);
    const double last = side == 0 ? end : std::min<double>(end, side);
    const double cut = std::max(first - *begin, end - last);
    *begin = first;
    if (cut > 0) *length = last - first;
    return cut > kRounding;
  };
  const bool clipped = clip(&box->x, &box->width, picture.width) |
                       clip(&box->y, &box->height, picture.height);
  if (!(box->width > 0 && box->height > 0)) return false;
  counts_.clipped += clipped;
  return true;
}

std::string Reader::LeftOut() const {
  std::vector<std::string> parts;
  for (const std::string& name : parents_) {
    parts.push_back(absl::StrCat("left out category '", name,
                                 "' (a supercategory without objects)"));
  }
  if (counts_.clipped > 0) {
    parts.push_back(absl::StrCat("clipped ",
                                 Counted(counts_.clipped, "box", "boxes"),
                                 " to the picture"));
  }
  if (counts_.outside > 0) {
    parts.push_back(absl::StrCat("left out ",
                                 Counted(counts_.outside, "box", "boxes"),
                                 " with no pixel in the picture"));
  }
  if (counts_.polygons > 0) {
    parts.push_back(absl::StrCat(
        "left out ", Counted(counts_.polygons, "polygon", "polygons"),
        " of fewer than 3 points"));
  }
  if (counts_.crowds > 0) {
    parts.push_back(absl::StrCat("took the boxes of ",
                                 Counted(counts_.crowds, "crowd", "crowds"),
                                 " with malformed masks"));
  }
  if (counts_.masks > 0 && counts_.without_mask > 0) {
    parts.push_back(absl::StrCat(
        "masks are not scored because ", counts_.without_mask, " of ",
        counts_.masks + counts_.without_mask, " objects have none"));
  }
  if (parts.empty()) return "";
  return absl::StrCat(file_, ": ", absl::StrJoin(parts, ", "));
}

}  // namespace

absl::StatusOr<CocoFile> ReadCocoFile(const std::string& json,
                                      const std::vector<std::string>& folders) {
  const absl::StatusOr<std::string> text = ReadFile(json);
  if (!text.ok()) return text.status();
  return Reader(json, folders).Read(*text);
}

}  // namespace sfmamba::client
