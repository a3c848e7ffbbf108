#include "client/commands/picture_source.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/commands/inputs.h"

namespace sfmamba::client {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(200);

}  // namespace

bool ListedPictures::Next(std::string* file) {
  while (std::getline(lines_, *file)) {
    if (!file->empty()) return true;
  }
  return false;
}

FolderPictures::FolderPictures(std::string folder, absl::Duration watch,
                               bool recursive)
    : folder_(std::move(folder)), watch_(watch), recursive_(recursive) {}

absl::Status FolderPictures::Check() const {
  std::error_code error;
  if (std::filesystem::is_directory(folder_, error)) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("'", folder_, "' is no folder; '-' reads names of files"));
}

std::vector<std::filesystem::directory_entry> FolderPictures::Files() const {
  std::error_code error;
  std::vector<std::filesystem::directory_entry> files;
  for (std::filesystem::recursive_directory_iterator it(folder_, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (!it->is_directory(gone)) {
      files.push_back(*it);
    } else if (!recursive_ || it->path().filename().string()[0] == '.') {
      it.disable_recursion_pending();
    }
  }
  return files;
}

void FolderPictures::LookForMore() {
  std::map<std::string, Look> now;
  std::set<std::string> complete;
  for (const std::filesystem::directory_entry& entry : Files()) {
    const std::string file = entry.path().string();
    std::error_code gone;
    if (taken_.count(file) > 0) continue;
    Look look;
    look.bytes = entry.file_size(gone);
    look.time = entry.last_write_time(gone).time_since_epoch().count();
    const auto before = seen_.find(file);
    if (first_ || (before != seen_.end() && before->second == look)) {
      complete.insert(file);
    } else {
      now[file] = look;
    }
  }
  first_ = false;
  seen_ = std::move(now);
  std::copy_if(complete.begin(), complete.end(), std::back_inserter(next_),
               IsPictureFile);
  taken_.insert(complete.begin(), complete.end());
}

bool FolderPictures::Next(std::string* file) {
  if (first_) LookForMore();
  const absl::Time end = absl::Now() + watch_;
  while (next_.empty()) {
    if (stopped_.load() || absl::Now() >= end) return false;
    absl::SleepFor(kBetweenLooks);
    LookForMore();
  }
  *file = std::move(next_.front());
  next_.pop_front();
  return true;
}

}  // namespace sfmamba::client
