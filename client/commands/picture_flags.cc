#include "client/commands/picture_flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace sfmamba::client {

void PictureFlags::AddTo(FlagSet* flags) {
  flags->Add("output_dir", "DIR",
             "write annotated pictures (PNG) to it; empty: none", &output_dir);
  flags->Add("classes", "N,N...",
             "only these classes ('sfmamba models NAME' numbers them); empty: "
             "all",
             &classes);
}

absl::Status ParseSize(absl::string_view flag, absl::string_view text,
                       int32_t* width, int32_t* height) {
  const std::vector<absl::string_view> sides = absl::StrSplit(text, 'x');
  if (sides.size() == 2 && absl::SimpleAtoi(sides[0], width) &&
      absl::SimpleAtoi(sides[1], height) && *width > 0 && *height > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, ": expected WxH, such as 512x512, got '", text, "'"));
}

absl::Status PictureFlags::ParseClasses(
    google::protobuf::RepeatedField<int32_t>* filter) const {
  for (const absl::string_view number :
       absl::StrSplit(classes, ',', absl::SkipEmpty())) {
    int32_t class_id;
    if (!absl::SimpleAtoi(number, &class_id)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--classes: expected whole numbers, got '", number, "'"));
    }
    filter->Add(class_id);
  }
  return absl::OkStatus();
}

}  // namespace sfmamba::client
