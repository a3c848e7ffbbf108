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

// Returns the encoding for the header Accept. Protobuf is selected by
// "application/x-protobuf" or "application/protobuf". The default is JSON.
Encoding EncodingFor(absl::string_view accept);

// Returns a message in protobuf's JSON mapping. Names are in lowerCamelCase,
// and fields with default values are omitted.
std::string ToJson(const google::protobuf::Message& message);

// Encodes a response in JSON or protobuf.
class ResponseBody final : public call::ResultSink {
 public:
  explicit ResponseBody(Encoding encoding) : encoding_(encoding) {}

  void Start(int count) override;
  int64_t Set(int i, const call::Message& result) override;
  int64_t Bytes(const call::Message& rest) const override;
  // Returns the HTTP response of a successful call. `rest` is the response
  // without its results. Must be called once, after all other methods.
  http::HttpResponse Take(const call::Message& rest);

 private:
  const Encoding encoding_;
  call::EncodedResults protobuf_;  // Used if encoding_ is kProtobuf.
  // The results in JSON. Nullopt if encoding_ is kProtobuf or if the response
  // has no field `results`.
  std::optional<std::vector<std::string>> json_;
};

}  // namespace sfmamba::rest

#endif  // SFMAMBA_SERVER_REST_RESPONSE_BODY_H_
