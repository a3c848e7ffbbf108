#ifndef SFMAMBA_SERVER_REST_FORM_DATA_H_
#define SFMAMBA_SERVER_REST_FORM_DATA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sfmamba::rest {

// A part of a form: where its content is in the body.
struct FormPart {
  std::string name;
  bool has_file_name = false;
  size_t begin = 0;
  size_t size = 0;
};

// Finds the parts of a body of multipart/form-data, RFC 7578: what browsers and
// `curl -F` send. `content_type` names the boundary. Takes memory for the parts
// alone, at most kMostParts, and time in proportion to the body.
//
// INVALID_ARGUMENT with reason MALFORMED_MESSAGE if there is no boundary, a
// part has no name or a head that is too long, the end is missing, or there are
// too many parts.
inline constexpr size_t kMostParts = 2000;
absl::StatusOr<std::vector<FormPart>> FindParts(absl::string_view content_type,
                                                absl::string_view body);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_FORM_DATA_H_
