#ifndef SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_FILES_H_
#define SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sfmamba::rest {

struct EmbeddedFile {
  absl::string_view name;  // "index.html"
  absl::string_view etag;  // Quoted, from the content's SHA-256.
  absl::string_view content;
};

// All files of the console; embed.py writes them into the program.
absl::Span<const EmbeddedFile> ConsoleFiles();

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_CONSOLE_CONSOLE_FILES_H_
