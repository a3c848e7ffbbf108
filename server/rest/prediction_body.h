#ifndef SFMAMBA_SERVER_REST_PREDICTION_BODY_H_
#define SFMAMBA_SERVER_REST_PREDICTION_BODY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/call/call.h"
#include "server/http/exchange.h"
#include "server/image/image_source.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {

// A part of a form, and where its content lies in the body.
struct FormPart {
  std::string name;
  bool has_file_name = false;
  size_t begin = 0;
  size_t size = 0;
};

// Finds the parts of a body of multipart/form-data, RFC 7578, which browsers
// and `curl -F` send. `content_type` names the boundary. Takes memory for at
// most kMostParts parts, and time in proportion to the body.
//
// INVALID_ARGUMENT with reason MALFORMED_MESSAGE if there is no boundary, a
// part has no name or a head that is too long, the end is missing, or there are
// too many parts.
inline constexpr size_t kMostParts = 2000;
absl::StatusOr<std::vector<FormPart>> FindParts(absl::string_view content_type,
                                                absl::string_view body);

// Returns whether a body begins like a JPEG, a PNG or a WebP picture.
bool IsPicture(absl::string_view body);

// The form of a request's body. The first bytes show a picture, whatever the
// Content-Type is. The first character shows JSON, because curl sends it with
// another type.
enum class BodyForm {
  kPicture,   // One picture. Also a body of none of the other forms.
  kForm,      // multipart/form-data: pictures and fields.
  kJson,      // application/json.
  kProtobuf,  // application/x-protobuf or application/protobuf.
};
BodyForm FormOf(absl::string_view content_type, absl::string_view body);

// Images of a request in strings.
class OwnedPictures : public call::Pictures {
 public:
  void SetBytes(image::ImageSource* source) override;
  void Release() override;

 protected:
  // `bytes` is the size of the request's body.
  explicit OwnedPictures(int64_t bytes) { bytes_ = bytes; }

  std::vector<std::string> owned_;
  std::vector<absl::string_view> views_;  // Views of owned_, by index.
};

// Takes the body of a request and parses it into `message`, an empty
// ClassifyRequest, DetectRequest or SegmentRequest, unless `status` is an
// error. The pictures stay in the body's memory, or are decoded from base64.
// Holds memory of `memory` while it parses JSON. See
// call::Call::ReadPictures().
//
// INVALID_ARGUMENT, as SetFromQuery(), FindParts(), ReadJson() and
// call::ReadRequest() say, or if a message comes with parameters in the query.
// RESOURCE_EXHAUSTED if there is no memory for a JSON body.
std::unique_ptr<call::Pictures> ReadBody(const absl::Status& status,
                                         int max_images,
                                         http::HttpRequest* request,
                                         server::MemoryBudget* memory,
                                         google::protobuf::Message* message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_PREDICTION_BODY_H_
