#include "server/repository/hugging_face_name.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/config.h"

namespace sfmamba::repository {
namespace {

constexpr char kPrefix[] = "mamba_vision_";

constexpr std::pair<const char*, const char*> kSizes[] = {
    {"tiny", "t"},  {"tiny2", "t2"},  {"small", "s"},   {"base", "b"},
    {"large", "l"}, {"large2", "l2"}, {"large3", "l3"}, {"t", "t"},
    {"t2", "t2"},   {"s", "s"},       {"b", "b"},       {"l", "l"},
    {"l2", "l2"},   {"l3", "l3"},
};

// Finds the last place in `text` where `second` follows `first`. One '-', '_'
// or space may be between the two words. Returns the offset right after
// `second`, or 0 if there is no such place.
size_t EndOfLast(absl::string_view text, absl::string_view first,
                 absl::string_view second) {
  size_t end = 0;
  for (size_t at = text.find(first); at != absl::string_view::npos;
       at = text.find(first, at + 1)) {
    size_t next = at + first.size();
    if (next < text.size() && absl::StrContains("-_ ", text.substr(next, 1))) {
      ++next;
    }
    if (absl::StartsWith(text.substr(next), second)) {
      end = next + second.size();
    }
  }
  return end;
}

std::string RowOf(std::string rest) {
  for (char& c : rest) c = absl::ascii_isalnum(c) ? c : ' ';
  const std::vector<std::string> parts = absl::StrSplit(rest, ' ');
  std::string size, pixels;
  for (const std::string& part : parts) {
    for (const auto& [name, row] : kSizes) {
      if (size.empty() && part == name) size = row;
    }
    if (pixels.empty() && (part == "256" || part == "512")) {
      pixels = absl::StrCat("_", part);
    }
  }
  const bool of_21k = absl::c_linear_search(parts, "21k");
  const std::vector<std::string> variants = model::VariantNames();
  for (const std::string& row :
       {pixels.empty() ? "" : absl::StrCat(size, pixels, "_21k"),
        absl::StrCat(size, of_21k ? "_21k" : ""), size}) {
    if (absl::c_linear_search(variants, absl::StrCat(kPrefix, row))) return row;
  }
  return "";
}

}  // namespace

NamedModel ReadModelName(absl::string_view name) {
  const std::string text = absl::AsciiStrToLower(name);
  const size_t vision = EndOfLast(text, "mamba", "vision");
  const size_t sf = EndOfLast(text, "sf", "mamba");
  if ((vision > 0) == (sf > 0)) return {};
  return {vision > 0, sf > 0, RowOf(text.substr(std::max(vision, sf)))};
}

}  // namespace sfmamba::repository
