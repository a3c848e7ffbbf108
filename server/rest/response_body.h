#ifndef SFMAMBA_SERVER_REST_RESPONSE_BODY_H_
#define SFMAMBA_SERVER_REST_RESPONSE_BODY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "server/call/encoded_results.h"
#include "server/http/exchange.h"

namespace sfmamba::rest {

enum class Encoding { kJson, kProtobuf };

// Returns the encoding that the header Accept asks for: protobuf if it names
// "application/x-protobuf" or "application/protobuf", else JSON.
Encoding EncodingFor(absl::string_view accept);

// Writes a message in protobuf's JSON mapping: names in lowerCamelCase, without
// fields that have their default value.
std::string ToJson(const google::protobuf::Message& message);

// Encodes a response as `encoding` says.
class ResponseBody final : public call::ResultSink {
 public:
  explicit ResponseBody(Encoding encoding) : encoding_(encoding) {}

  void Start(int count) override;
  int64_t Set(int i, const call::Message& result) override;
  int64_t Bytes(const call::Message& rest) const override;
  // Returns the response, OK. Called once, last.
  http::HttpResponse Take(const call::Message& rest);

 private:
  const Encoding encoding_;
  call::EncodedResults protobuf_;                 // If encoding_ is kProtobuf.
  std::optional<std::vector<std::string>> json_;  // None: without results.
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_RESPONSE_BODY_H_
