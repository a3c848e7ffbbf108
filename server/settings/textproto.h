#ifndef SFMAMBA_SERVER_SETTINGS_TEXTPROTO_H_
#define SFMAMBA_SERVER_SETTINGS_TEXTPROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace sfmamba::server {

// Parses protobuf text format, in which durations and sizes may be written as
// in flags. INVALID_ARGUMENT with line and column of the first error; an
// unknown field is one. If the field was a setting that has been removed, the
// message says what to use instead. `what` names the text in the message.
absl::Status ParseTextProto(absl::string_view what, const std::string& text,
                            google::protobuf::Message* message);

// Returns the whole file without a byte order mark. NOT_FOUND with `what`, not
// the path, if it cannot be read, INVALID_ARGUMENT if it is larger than
// `max_bytes` or a Git LFS pointer.
absl::StatusOr<std::string> ReadTextFile(absl::string_view what,
                                         const std::string& path,
                                         size_t max_bytes);

}  // namespace sfmamba::server

#endif  // SFMAMBA_SERVER_SETTINGS_TEXTPROTO_H_
