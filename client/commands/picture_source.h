#ifndef SFMAMBA_CLIENT_COMMANDS_PICTURE_SOURCE_H_
#define SFMAMBA_CLIENT_COMMANDS_PICTURE_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <istream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace sfmamba::client {

// Names of picture files, one after another.
class PictureSource {
 public:
  virtual ~PictureSource() = default;

  // Waits for the next one; false if there are no more.
  virtual bool Next(std::string* file) = 0;
  // Ends the wait of a Next() that waits for a file to come. Any thread.
  virtual void Stop() {}
};

// The lines of a stream.
class ListedPictures final : public PictureSource {
 public:
  explicit ListedPictures(std::istream* lines) : lines_(*lines) {}
  bool Next(std::string* file) override;

 private:
  std::istream& lines_;
};

// The pictures of a folder (IsPictureFile()), ordered by path, with those of
// its folders if `recursive`, hidden folders not included; then, if `watch`
// is not zero, new ones, until none has come for `watch`. A new file is taken
// once two looks have found the same size and modification time: it is then
// taken to be complete.
class FolderPictures final : public PictureSource {
 public:
  FolderPictures(std::string folder, absl::Duration watch,
                 bool recursive = false);

  // NOT_FOUND if there is no such folder.
  absl::Status Check() const;
  bool Next(std::string* file) override;
  void Stop() override { stopped_.store(true); }

 private:
  struct Look {
    uintmax_t bytes = 0;
    int64_t time = 0;
    bool operator==(const Look& other) const {
      return bytes == other.bytes && time == other.time;
    }
  };

  // The paths of all files that are no folders.
  std::vector<std::filesystem::directory_entry> Files() const;
  // Adds what has come and is complete. All is complete at the first look.
  void LookForMore();

  const std::string folder_;
  const absl::Duration watch_;
  const bool recursive_;
  std::atomic<bool> stopped_{false};
  bool first_ = true;
  std::set<std::string> taken_;       // Files that are no pictures too.
  std::map<std::string, Look> seen_;  // Files not taken yet.
  std::deque<std::string> next_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PICTURE_SOURCE_H_
