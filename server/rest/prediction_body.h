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

// A part of a form and the position of its content in the body.
struct FormPart {
  std::string name;
  bool has_file_name = false;
  size_t begin = 0;
  size_t size = 0;
};

// The maximum number of parts in a form.
inline constexpr size_t kMostParts = 2000;

// Finds the parts of a multipart/form-data body (RFC 7578). Browsers and `curl
// -F` send such bodies. `content_type` contains the boundary between the parts.
// Runs in linear time.
//
// Returns INVALID_ARGUMENT with reason MALFORMED_MESSAGE in these cases:
// - There is no boundary.
// - A part has no name.
// - The headers of a part are too long.
// - The end of the body is missing.
// - There are more than kMostParts parts.
absl::StatusOr<std::vector<FormPart>> FindParts(absl::string_view content_type,
                                                absl::string_view body);

// Returns true if a body starts like a JPEG, PNG or WebP picture.
bool IsPicture(absl::string_view body);

// The format of a request body. A picture is detected by its first bytes. The
// Content-Type of a picture is ignored. JSON is detected by its first
// character, because curl sends JSON with another type.
enum class BodyForm {
  kPicture,  // One picture. This is the form if no other form fits.
  kForm,     // A multipart/form-data body with pictures and fields.
  kJson,     // A request message in JSON (application/json).
  // A request message in protobuf (application/x-protobuf or
  // application/protobuf).
  kProtobuf,
};
BodyForm FormOf(absl::string_view content_type, absl::string_view body);

// Holds the images of a request. The bytes of the images are in strings that
// this object owns.
class OwnedPictures : public call::Pictures {
 public:
  void SetBytes(image::ImageSource* source) override;
  void Release() override;

 protected:
  // `bytes` is the size of the request body.
  explicit OwnedPictures(int64_t bytes) { bytes_ = bytes; }

  std::vector<std::string> owned_;
  // The bytes of the images. Each view points into owned_. In the parsed
  // message, the index of a view stands in place of an image's bytes (see
  // call::IndexBytes()).
  std::vector<absl::string_view> views_;
};

// Parses the body of a request into `message`, an empty ClassifyRequest,
// DetectRequest or SegmentRequest. `status` is the result of earlier checks,
// for example of the request's headers. If `status` is an error, this function
// parses nothing, and `status` becomes the status() of the returned object. The
// pictures stay in the body's memory, unless they are decoded from base64.
// Parsing JSON reserves memory from `memory`. See call::Call::ReadPictures().
//
// The status() of the returned object may be an error of SetFromQuery(),
// FindParts(), ReadJson() or call::ReadRequest(), or one of these errors:
// - INVALID_ARGUMENT: the body is a message, but the query also has parameters.
// - RESOURCE_EXHAUSTED: there is not enough memory for a JSON body.
std::unique_ptr<call::Pictures> ReadBody(const absl::Status& status,
                                         int max_images,
                                         http::HttpRequest* request,
                                         server::MemoryBudget* memory,
                                         google::protobuf::Message* message);

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_PREDICTION_BODY_H_
