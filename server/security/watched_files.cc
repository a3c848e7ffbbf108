#include "server/security/watched_files.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/settings/textproto.h"

namespace sfmamba::security {

WatchedFiles::WatchedFiles(Options options) : options_(std::move(options)) {}

absl::StatusOr<WatchedFiles::Contents> WatchedFiles::Read() const {
  Contents contents;
  for (const File& file : options_.files) {
    absl::StatusOr<std::string> text =
        server::ReadTextFile(absl::StrCat(file.setting, ": ", file.path),
                             file.path, options_.max_bytes);
    if (!text.ok()) return text.status();
    contents.push_back(*std::move(text));
  }
  return contents;
}

absl::Status WatchedFiles::Open() {
  absl::StatusOr<Contents> contents = Read();
  if (!contents.ok()) return contents.status();
  const absl::Status status = options_.take(*contents);
  if (status.ok()) taken_ = *std::move(contents);
  return status;
}

void WatchedFiles::Look() {
  absl::StatusOr<Contents> contents = Read();
  absl::Status status = contents.status();
  if (status.ok()) {
    // Equal contents are taken already: a change may have been undone.
    const bool changed = *contents != taken_;
    if (changed) status = options_.take(*contents);
    if (status.ok()) {
      error_.clear();
      error_told_ = false;
      if (!changed) return;
      taken_ = *std::move(contents);
      return options_.changed(absl::OkStatus());
    }
  }
  const bool again = std::exchange(error_, status.ToString()) == error_;
  if (!again) {
    error_told_ = false;
  } else if (!std::exchange(error_told_, true)) {
    options_.changed(status);
  }
}

}  // namespace sfmamba::security
