#include "client/commands/picture_output.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/png_encoder.h"
#include "client/commands/inputs.h"
#include "client/picture/picture_reader.h"

namespace sfmamba::client {

PictureOutput::PictureOutput(std::string directory, std::string verb)
    : directory_(std::move(directory)), verb_(std::move(verb)) {}

std::string PictureOutput::PathFor(const std::string& file) const {
  const std::string stem = std::filesystem::path(file).stem();
  return std::filesystem::path(directory_) /
         absl::StrCat(stem, ".", verb_, ".png");
}

absl::Status PictureOutput::Prepare(
    const std::vector<std::string>& files) const {
  std::map<std::string, std::string> sources;
  for (const std::string& file : files) {
    const auto [entry, is_new] = sources.insert({PathFor(file), file});
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", entry->second, "' and '", file,
                       "' would both be drawn to '", entry->first, "'"));
    }
  }
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot make directory '", directory_, "': ", error.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> PictureOutput::Write(const std::string& file,
                                                 const Draw& draw) const {
  const absl::StatusOr<std::string> bytes = ReadFile(file);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<Picture> picture = ReadPicture(*bytes);
  if (!picture.ok()) return picture.status();
  const absl::StatusOr<Picture> drawn = draw(*picture);
  if (!drawn.ok()) return drawn.status();
  const absl::StatusOr<std::string> png = base::EncodeRgbPng(*drawn);
  if (!png.ok()) return png.status();
  const std::string path = PathFor(file);
  const absl::Status written = SaveFile(path, *png);
  if (!written.ok()) return written;
  return path;
}

}  // namespace sfmamba::client
