#ifndef SFMAMBA_SERVER_REST_PREDICTION_BODY_H_
#define SFMAMBA_SERVER_REST_PREDICTION_BODY_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/http/exchange.h"
#include "server/rest/body_pictures.h"
#include "server/rest/call_headers.h"
#include "server/rest/json_body.h"
#include "server/rest/query_fields.h"
#include "server/shares/memory_budget.h"

namespace sfmamba::rest {

// How a body says what is asked for, by its Content-Type.
enum class BodyForm {
  kPicture,   // image/*, application/octet-stream or none.
  kJson,      // application/json.
  kProtobuf,  // application/x-protobuf or application/protobuf.
  kUnknown,
};
BodyForm FormOf(absl::string_view content_type);

// INVALID_ARGUMENT with field "content-type".
absl::Status UnknownForm(absl::string_view content_type);
// A request message has its parameters in itself. INVALID_ARGUMENT with reason
// INVALID_FIELD and the first parameter as field.
absl::Status CheckNoQuery(const http::HttpRequest& request);

// All of a body, which lives as long as the bytes.
grpc::ByteBuffer BytesOf(std::string body);

// Takes the body of a request and fills `message` with the bytes of a
// ClassifyRequest, DetectRequest or SegmentRequest that says the same. Bytes of
// pictures are not copied. `surplus` holds memory of `memory` for what the body
// takes beside them.
//
// INVALID_ARGUMENT, as SetFromQuery() and ReadJson() say; RESOURCE_EXHAUSTED if
// there is no memory for a JSON body.
template <typename Request>
absl::Status ReadBody(http::HttpRequest* request, server::MemoryBudget* memory,
                      grpc::ByteBuffer* message, server::MemoryHold* surplus) {
  const absl::string_view type = Header(*request, "content-type");
  const BodyForm form = FormOf(type);
  if (form == BodyForm::kUnknown) return UnknownForm(type);
  Request read;
  if (form == BodyForm::kPicture) {
    v1::Image* image = read.add_images();
    const absl::Status status = SetFromQuery(
        request->query,
        {&read, read.mutable_params(), read.mutable_options(), image});
    if (!status.ok()) return status;
    BodyPictures pictures(std::move(request->body));
    image->set_encoded(pictures.Add(0, pictures.size()));
    *message = pictures.Message(std::move(read));
    return absl::OkStatus();
  }
  absl::Status status = CheckNoQuery(*request);
  if (!status.ok()) return status;
  if (form == BodyForm::kProtobuf) {
    *message = BytesOf(std::move(request->body));
    return absl::OkStatus();
  }
  const int64_t bytes = request->body.size();
  absl::StatusOr<server::MemoryHold> hold =
      memory->Take(server::MemoryUse::kMessage, bytes);
  if (!hold.ok()) return hold.status();
  BodyPictures pictures(std::move(request->body));
  status = ReadJson(&pictures, &read);
  if (!status.ok()) return status;
  *message = pictures.Message(std::move(read));
  // The prediction holds the message's own bytes.
  *surplus = *std::move(hold);
  return surplus->Resize(
      std::max<int64_t>(0, bytes - static_cast<int64_t>(message->Length())));
}

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_PREDICTION_BODY_H_
