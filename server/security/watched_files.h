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
    std::string setting;  // The setting that names the file.
    std::string path;
  };

  struct Options {
    std::vector<File> files;
    size_t max_bytes = 1 << 20;  // Most bytes of one file.
    // Takes the files' contents. On an error the previous contents stay in use.
    std::function<absl::Status(const Contents&)> take;
    // Called when the files have changed: with OK once they are taken, or once
    // with the error if they cannot be read or taken. While files are being
    // written one after another they do not fit each other: an error is
    // reported only if two looks in a row find it.
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
  std::string error_;        // The last look's; empty: none.
  bool error_told_ = false;  // Whether `changed` was called with it.
};

}  // namespace sfmamba::security

#endif  // SFMAMBA_SERVER_SECURITY_WATCHED_FILES_H_
