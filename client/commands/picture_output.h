#ifndef SFMAMBA_CLIENT_COMMANDS_PICTURE_OUTPUT_H_
#define SFMAMBA_CLIENT_COMMANDS_PICTURE_OUTPUT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/picture/picture.h"

namespace sfmamba::client {

// Where annotated pictures go: "photos/cat.jpg" to
// "<directory>/cat.<verb>.png".
class PictureOutput {
 public:
  // Annotates a picture.
  using Draw = std::function<absl::StatusOr<Picture>(const Picture& picture)>;

  PictureOutput(std::string directory, std::string verb);

  std::string PathFor(const std::string& file) const;

  // Makes the directory. INVALID_ARGUMENT if two of `files` would become the
  // same picture or the directory cannot be made.
  absl::Status Prepare(const std::vector<std::string>& files) const;

  // Reads `file`, draws and writes; returns the path written to. The error of
  // reading or of `draw`, or UNAVAILABLE if the picture cannot be written.
  absl::StatusOr<std::string> Write(const std::string& file,
                                    const Draw& draw) const;

 private:
  const std::string directory_;
  const std::string verb_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PICTURE_OUTPUT_H_
