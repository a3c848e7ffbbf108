#include "server/repository/hugging_face_input.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/repository/version_files.h"

namespace sfmamba::repository {
namespace {

using nlohmann::json;

constexpr int kMostPixels = 16384;
constexpr double kMostColour = 1e6;
// Values that differ by less than this are considered equal.
constexpr double kSame = 1e-6;
// If the input's side is shorter than this number of pixels, ConvNeXt's
// preprocessing crops the picture. Otherwise, the preprocessing stretches the
// picture. See ReadGeometry().
constexpr int kLeastSquashed = 384;
constexpr int kBicubic = 3;  // Pillow's number for bicubic resampling.

enum Fact { kSize, kCropPct, kResize, kMean, kStd, kFilter, kFacts };

struct Stated {
  std::vector<double> values;  // Enums and filters are stored as numbers.
  Member member;
};

// The values that one source contains. A source is either one MemberLevel of
// config.json or the whole file preprocessor_config.json.
using Statement = std::array<std::optional<Stated>, kFacts>;

// Returns the side of a square in pixels. Returns 0 if `size` is not a square
// or the side is out of range. Accepts these forms:
//   [3, side, side]
//   [side, side]
//   {"height": side, "width": side}
//   {"shortest_edge": side}
//   side
int SideOf(const json& size) {
  json side = size;
  if (side.is_array() && side.size() == 3 && side[0] == 3) side.erase(0);
  if (side.is_array() && side.size() == 2 && side[0] == side[1]) {
    side = json(side[0]);
  } else if (side.is_object() && side.size() == 2 && side.contains("height") &&
             side.contains("width") && side["height"] == side["width"]) {
    side = json(side["height"]);
  } else if (side.is_object() && side.size() == 1 &&
             side.contains("shortest_edge")) {
    side = json(side["shortest_edge"]);
  }
  return Member{"", side}.IsInteger(1, kMostPixels) ? side.get<int>() : 0;
}

absl::Status ReadSize(const MemberLevel& level, Statement* stated) {
  for (const char* name : {"input_size", "image_size", "img_size",
                           "input_resolution", "resolution"}) {
    const Member member = level.At(name);
    if (member.is_missing()) continue;
    const int side = SideOf(member.value);
    if (side == 0) {
      return member.Refuse(
          absl::StrCat("[3, side, side] of a square input of 1 to ",
                       kMostPixels, " pixels"));
    }
    (*stated)[kSize] = {{static_cast<double>(side)}, member};
    break;
  }
  return absl::OkStatus();
}

// Reads the mean or the standard deviation of the three colours from the member
// `name`. Each value must be greater than `least`.
absl::Status ReadColours(const MemberLevel& level, const char* name,
                         double least, std::optional<Stated>* stated) {
  const Member member = level.At(name);
  if (member.is_missing()) return absl::OkStatus();
  const bool is_right =
      member.IsNumbers(3) &&
      std::all_of(member.value.begin(), member.value.end(),
                  [&](const json& v) { return v > least && v < kMostColour; });
  if (!is_right) {
    return member.Refuse(
        absl::StrCat("3 numbers", least == 0 ? " above 0" : ""));
  }
  *stated = {member.value.get<std::vector<double>>(), member};
  return absl::OkStatus();
}

absl::Status ReadCropPct(const MemberLevel& level, Statement* stated) {
  const Member member = level.At("crop_pct");
  if (member.is_missing()) return absl::OkStatus();
  if (!member.value.is_number() || member.value < 0.01 || member.value > 1) {
    return member.Refuse("a number of 0.01 to 1");
  }
  (*stated)[kCropPct] = {{member.value.get<double>()}, member};
  return absl::OkStatus();
}

absl::StatusOr<Statement> ReadLevel(const MemberLevel& level) {
  Statement stated;
  absl::Status status = ReadSize(level, &stated);
  status.Update(ReadCropPct(level, &stated));
  status.Update(ReadColours(level, "mean", -kMostColour, &stated[kMean]));
  status.Update(ReadColours(level, "std", 0, &stated[kStd]));
  const Member mode = level.At("crop_mode");
  if (mode.value == "center")
    stated[kResize] = {{v1::Input::CENTER_CROP}, mode};
  if (mode.value == "squash") stated[kResize] = {{v1::Input::STRETCH}, mode};
  if (!mode.is_missing() && !stated[kResize].has_value()) {
    status.Update(mode.Refuse("\"center\" or \"squash\""));
  }
  const Member filter = level.At("interpolation");
  if (!filter.is_missing()) {
    const double number = filter.value == "bicubic" ? kBicubic : -1;
    stated[kFilter] = {{number}, filter};
  }
  if (!status.ok()) return status;
  return stated;
}

// Reads the mean and the standard deviation of the colours. The file's values
// apply to pixels multiplied by rescale_factor. The function converts these
// values, because the server divides pixels by 255.
absl::Status ReadNormalization(const MemberLevel& level, Statement* stated) {
  const Member normalize = level.At("do_normalize");
  absl::Status status;
  if (normalize.value == false) {
    (*stated)[kMean] = {{0, 0, 0}, normalize};
    (*stated)[kStd] = {{1, 1, 1}, normalize};
  } else {
    status.Update(
        ReadColours(level, "image_mean", -kMostColour, &(*stated)[kMean]));
    status.Update(ReadColours(level, "image_std", 0, &(*stated)[kStd]));
  }
  const Member factor = level.At("rescale_factor");
  if (!factor.is_missing() &&
      (!factor.value.is_number() || factor.value <= 0 || factor.value > 1)) {
    status.Update(factor.Refuse("a number above 0, at most 1"));
  }
  if (!status.ok()) return status;
  double scale = factor.is_missing() ? 1 : 255 * factor.value.get<double>();
  if (level.At("do_rescale").value == false) scale = 255;
  if (std::abs(scale - 1) < kSame) return absl::OkStatus();
  for (const Fact fact : {kMean, kStd}) {
    if (!(*stated)[fact].has_value()) continue;
    for (double& value : (*stated)[fact]->values) value /= scale;
  }
  return absl::OkStatus();
}

void SetGeometry(int size, double crop_pct, v1::Input::Resize resize,
                 const Member& of_size, const Member& of_crop,
                 Statement* stated) {
  (*stated)[kSize] = {{static_cast<double>(size)}, of_size};
  (*stated)[kCropPct] = {{crop_pct}, of_crop};
  (*stated)[kResize] = {{static_cast<double>(resize)}, of_crop};
}

// Reads how pictures are resized and cropped. The member "crop_size" is the
// size of the crop that is cut out after the resize. The resize depends on the
// form of the member "size":
// - {"shortest_edge": n} resizes the shorter side of the picture to n pixels.
// - {"height": n, "width": n} stretches the picture to n x n pixels.
// - n or [n, n] resizes the shorter side to n pixels if a crop is cut out.
//   Otherwise, it stretches the picture to n x n pixels.
// ConvNeXt's preprocessing has the member "crop_pct" and no crop. In this case,
// {"shortest_edge": n} has another meaning:
// - If n < kLeastSquashed, resizes the shorter side to n / crop_pct pixels.
//   Then cuts out the centre of n x n pixels.
// - Otherwise, stretches the picture to n x n pixels.
absl::Status ReadGeometry(const MemberLevel& level, Statement* stated,
                          std::vector<std::string>* warnings) {
  const Member size = level.At("size"), crop = level.At("crop_size");
  const Member do_crop = level.At("do_center_crop");
  const Member crop_pct = level.At("crop_pct"), resize = level.At("do_resize");
  if (resize.value == false) {
    warnings->push_back(
        absl::StrCat(resize.label, " is false, but the server resizes"));
    return absl::OkStatus();
  }
  if (size.is_missing()) return absl::OkStatus();
  const int side = SideOf(size.value);
  if (side == 0) {
    return size.Refuse(
        absl::StrCat("a square of 1 to ", kMostPixels, " pixels"));
  }
  const bool is_edge =
      size.value.is_object() && size.value.contains("shortest_edge");
  const bool crops = !crop.is_missing() &&
                     (do_crop.is_missing() ? is_edge : do_crop.value == true);
  const bool is_squashed = size.value.is_object() ? !is_edge : !crops;
  if (crops) {
    const int cut = SideOf(crop.value);
    if (cut == 0 || cut > side) {
      return crop.Refuse(absl::StrCat("a square of 1 to ", side, " pixels"));
    }
    SetGeometry(cut, static_cast<double>(cut) / side,
                is_squashed ? v1::Input::STRETCH : v1::Input::CENTER_CROP, crop,
                do_crop.is_missing() ? crop : do_crop, stated);
    return absl::OkStatus();
  }
  const absl::Status status = ReadCropPct(level, stated);
  if (!status.ok()) return status;
  const bool is_cut =
      is_edge && !crop_pct.is_missing() && side < kLeastSquashed;
  if (is_edge && crop_pct.is_missing()) {
    warnings->push_back(absl::StrCat(
        size.label, " is ", size.Shown(),
        " without a crop, but the server cuts the square centre out"));
  }
  SetGeometry(side, is_cut ? crop_pct.value.get<double>() : 1,
              is_squashed || (!crop_pct.is_missing() && !is_cut)
                  ? v1::Input::STRETCH
                  : v1::Input::CENTER_CROP,
              size,
              is_cut                 ? crop_pct
              : do_crop.is_missing() ? size
                                     : do_crop,
              stated);
  return absl::OkStatus();
}

absl::StatusOr<Statement> ReadPreprocessor(const json& object,
                                           std::vector<std::string>* warnings) {
  const MemberLevel level = {absl::StrCat(kPreprocessorFile, ": "), &object};
  Statement stated;
  absl::Status status = ReadNormalization(level, &stated);
  status.Update(ReadGeometry(level, &stated, warnings));
  const Member filter = level.At("resample");
  if (!filter.is_missing() && !filter.IsInteger(0, 5)) {
    status.Update(filter.Refuse("a filter of 0 to 5"));
  }
  if (!status.ok()) return status;
  if (!filter.is_missing()) {
    stated[kFilter] = {{filter.value.get<double>()}, filter};
  }
  return stated;
}

bool IsSame(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) < kSame; });
}

// Returns the value of `fact` from the first source that contains the fact, or
// null if there is none. Adds a warning for each later source with a different
// value.
const Stated* Take(const std::vector<Statement>& statements, Fact fact,
                   std::vector<std::string>* warnings) {
  const Stated* first = nullptr;
  for (const Statement& statement : statements) {
    const std::optional<Stated>& stated = statement[fact];
    if (!stated.has_value()) continue;
    if (first == nullptr) {
      first = &*stated;
    } else if (!IsSame(first->values, stated->values)) {
      warnings->push_back(
          absl::StrCat(stated->member.label, " is ", stated->member.Shown(),
                       ", but ", first->member.label, " is ",
                       first->member.Shown(), ", which is taken"));
    }
  }
  return first;
}

}  // namespace

absl::Status ReadHuggingFaceInput(const std::vector<MemberLevel>& levels,
                                  const json& preprocessor, v1::Input* input,
                                  std::vector<std::string>* warnings) {
  std::vector<Statement> statements;
  for (const MemberLevel& level : levels) {
    absl::StatusOr<Statement> stated = ReadLevel(level);
    if (!stated.ok()) return stated.status();
    statements.push_back(*std::move(stated));
  }
  if (!preprocessor.is_null()) {
    absl::StatusOr<Statement> stated = ReadPreprocessor(preprocessor, warnings);
    if (!stated.ok()) return stated.status();
    statements.push_back(*std::move(stated));
  }
  const auto take = [&](Fact fact) { return Take(statements, fact, warnings); };
  if (const Stated* size = take(kSize)) input->set_size(size->values[0]);
  if (const Stated* pct = take(kCropPct)) input->set_crop_pct(pct->values[0]);
  if (const Stated* resize = take(kResize)) {
    input->set_resize(static_cast<v1::Input::Resize>(resize->values[0]));
  }
  if (const Stated* mean = take(kMean)) {
    for (const double value : mean->values) input->add_mean(value);
  }
  if (const Stated* std = take(kStd)) {
    for (const double value : std->values) input->add_std(value);
  }
  const Stated* filter = take(kFilter);
  if (filter == nullptr || filter->values[0] == kBicubic) {
    return absl::OkStatus();
  }
  if (filter->values[0] < 0) return filter->member.Refuse("\"bicubic\"");
  warnings->push_back(absl::StrCat(filter->member.label, " is ",
                                   filter->member.Shown(),
                                   ", but the server resizes by bicubic (3)"));
  return absl::OkStatus();
}

}  // namespace sfmamba::repository
