#include "client/picture/exif.h"

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libexif/exif-data.h"
#include "libexif/exif-utils.h"

namespace sfmamba::client {
namespace {

constexpr absl::string_view kPrefix("Exif\0\0", 6);

}  // namespace

int OrientationOf(absl::string_view exif) {
  if (exif.empty()) return 1;
  // libexif wants the prefix, which PNG and WebP leave out.
  const std::string block = absl::StartsWith(exif, kPrefix)
                                ? std::string(exif)
                                : absl::StrCat(kPrefix, exif);
  const std::unique_ptr<ExifData, decltype(&exif_data_unref)> data(
      exif_data_new(), exif_data_unref);
  if (data == nullptr) return 1;
  // As stored, not as the specification would have it.
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(),
                      reinterpret_cast<const unsigned char*>(block.data()),
                      block.size());
  const ExifEntry* entry =
      exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT ||
      entry->components != 1 || entry->size < 2) {
    return 1;
  }
  const int orientation =
      exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

}  // namespace sfmamba::client
