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
