#ifndef SFMAMBA_SERVER_SECURITY_WATCHED_FILES_H_
#define SFMAMBA_SERVER_SECURITY_WATCHED_FILES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sfmamba::security {

// Files that belong together, such as a certificate and its key, and that are
// taken anew when what they hold changes. What they hold is compared, not their
// times or names, so a swapped symbolic link, as Kubernetes does it, is seen
// too.
//
// Thread-compatible.
class WatchedFiles {
 public:
  using Contents = std::vector<std::string>;  // In the order of the files.

  struct File {
    std::string setting;  // That names it.
    std::string path;
  };

  struct Options {
    std::vector<File> files;
    size_t max_bytes = 1 << 20;  // Of each.
    // Takes the files' contents. On an error those taken before stay.
    std::function<absl::Status(const Contents&)> take;
    // Called when the files have changed: with OK once they are taken; with the
    // error once when they cannot be taken, or not even read. Files that are
    // written one after another do not fit meanwhile: an error is told when
    // it is there at two looks.
    std::function<void(const absl::Status&)> changed;
  };

  explicit WatchedFiles(Options options);

  // Takes the files for the first time; `changed` is not called. The error
  // names the setting and the file that cannot be read.
  absl::Status Open();
  // Takes them again if they have changed. To be called now and then.
  void Look();

 private:
  absl::StatusOr<Contents> Read() const;

  const Options options_;
  Contents taken_;
  std::string error_;        // At the last look; empty: none.
  bool error_told_ = false;  // Whether `changed` knows of it.
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_WATCHED_FILES_H_
