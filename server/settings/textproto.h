#ifndef SFMAMBA_SERVER_SETTINGS_TEXTPROTO_H_
#define SFMAMBA_SERVER_SETTINGS_TEXTPROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace sfmamba::server {

// Parses protobuf text format. Durations and sizes may be written as in flags,
// for example "5s" or "32MiB". Returns INVALID_ARGUMENT with line and column of
// the first error. An unknown field is an error. If the field is a removed
// setting, the message names the replacement. `what` identifies the text in
// error messages.
absl::Status ParseTextProto(absl::string_view what, const std::string& text,
                            google::protobuf::Message* message);

// Returns the whole file without its byte order mark. Returns NOT_FOUND if the
// file cannot be read. Returns INVALID_ARGUMENT if the file is larger than
// `max_bytes` or is a Git LFS pointer. The errors contain `what` instead of the
// path.
absl::StatusOr<std::string> ReadTextFile(absl::string_view what,
                                         const std::string& path,
                                         size_t max_bytes);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_TEXTPROTO_H_
