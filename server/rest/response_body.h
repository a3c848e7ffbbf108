#ifndef SFMAMBA_SERVER_REST_RESPONSE_BODY_H_
#define SFMAMBA_SERVER_REST_RESPONSE_BODY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/http/exchange.h"

namespace sfmamba::rest {

enum class Encoding { kJson, kProtobuf };

// What the header Accept asks for: protobuf if it names
// "application/x-protobuf" or "application/protobuf", else JSON.
Encoding EncodingFor(absl::string_view accept);

// A message as protobuf's JSON mapping has it: names in lowerCamelCase, fields
// with their default value left out.
std::string ToJson(const google::protobuf::Message& message);

// A whole message, answered OK.
http::HttpResponse MessageResponse(const google::protobuf::Message& message,
                                   Encoding encoding);

// The body of a ClassifyResponse, DetectResponse or SegmentResponse, written
// result by result. Thread-compatible, but results of different images may be
// set at once.
class ResponseBody {
 public:
  explicit ResponseBody(Encoding encoding) : encoding_(encoding) {}

  // To be called first: `images` results, which are empty so far.
  void Start(int images);
  // Returns how many bytes the result takes.
  int64_t SetResult(int i, const google::protobuf::Message& result);
  // Returns the size of the whole body; `rest` is the response without results.
  int64_t Bytes(const google::protobuf::Message& rest) const;
  // Returns the whole body; once.
  http::HttpResponse Take(const google::protobuf::Message& rest);

 private:
  const Encoding encoding_;
  std::vector<std::string> results_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_RESPONSE_BODY_H_
