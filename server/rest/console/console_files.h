#ifndef SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_FILES_H_
#define SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::rest {

struct EmbeddedFile {
  absl::string_view name;  // Such as "index.html".
  // The ETag header of the file, in quotes. It is derived from the SHA-256 of
  // the content.
  absl::string_view etag;
  absl::string_view content;
};

// Returns all files of the console. embed.py generates the definition of this
// function.
absl::Span<const EmbeddedFile> ConsoleFiles();

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_FILES_H_
