#ifndef SFMAMBA_CLIENT_COMMANDS_PICTURE_OUTPUT_H_
#define SFMAMBA_CLIENT_COMMANDS_PICTURE_OUTPUT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/picture/picture.h"

namespace sfmamba::client {

// Writes annotated pictures to a directory. The annotated "photos/cat.jpg"
// becomes "<directory>/cat.<verb>.png".
class PictureOutput {
 public:
  // Returns an annotated copy of a picture.
  using Draw = std::function<absl::StatusOr<Picture>(const Picture& picture)>;

  PictureOutput(std::string directory, std::string verb);

  std::string PathFor(const std::string& file) const;

  // Creates the directory. Returns INVALID_ARGUMENT if this fails, or if two of
  // `files` would become the same annotated picture.
  absl::Status Prepare(const std::vector<std::string>& files) const;

  // Reads `file`, draws and writes the result. Returns its path. Returns an
  // error if `file` cannot be read or `draw` fails, and UNAVAILABLE if the
  // result cannot be written.
  absl::StatusOr<std::string> Write(const std::string& file,
                                    const Draw& draw) const;

 private:
  const std::string directory_;
  const std::string verb_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_PICTURE_OUTPUT_H_
