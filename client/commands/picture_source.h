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

// Gives the names of picture files, one after another.
class PictureSource {
 public:
  virtual ~PictureSource() = default;

  // Waits for the next name. Returns false if there are no more.
  virtual bool Next(std::string* file) = 0;
  // If a Next() is waiting for new files, Stop() makes it return false. Any
  // thread may call Stop().
  virtual void Stop() {}
};

// The names are the lines of a stream. Empty lines are ignored.
class ListedPictures final : public PictureSource {
 public:
  explicit ListedPictures(std::istream* lines) : lines_(*lines) {}
  bool Next(std::string* file) override;

 private:
  std::istream& lines_;
};

// The names of the pictures in a folder, ordered by path. IsPictureFile()
// decides what a picture is. If `recursive` is true, subfolders are included,
// except hidden ones. If `watch` is not zero, Next() then waits for new
// pictures. It returns false if no new picture is complete after the time
// `watch`. A new file is complete if its size and modification time have not
// changed between two scans of the folder.
class FolderPictures final : public PictureSource {
 public:
  FolderPictures(std::string folder, absl::Duration watch,
                 bool recursive = false);

  // Returns NOT_FOUND if the folder does not exist.
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

  // Returns everything in the folder except folders.
  std::vector<std::filesystem::directory_entry> Files() const;
  // Scans the folder and adds files that are new and complete. In the first
  // scan, all files count as complete.
  void LookForMore();

  const std::string folder_;
  const absl::Duration watch_;
  const bool recursive_;
  std::atomic<bool> stopped_{false};
  bool first_ = true;
  // All complete files that were found, including files that are not pictures.
  std::set<std::string> taken_;
  // The files that were not yet complete at the last scan.
  std::map<std::string, Look> seen_;
  std::deque<std::string> next_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PICTURE_SOURCE_H_
