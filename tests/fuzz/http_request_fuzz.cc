// Fuzzes the bytes of an HTTP connection. Requests must be read or refused
// within the limits. The result must not depend on how the bytes are divided.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "server/http/request_reader.h"
#include "tests/fuzz/check.h"

namespace {

using sfmamba::Check;
using sfmamba::http::HttpRequest;
using sfmamba::http::RequestReader;
using sfmamba::http::Room;
using Stage = RequestReader::Stage;

constexpr RequestReader::Limits kLimits = {2048, 4096};
constexpr int64_t kRoom = 32 << 10;

std::string Describe(const HttpRequest& request) {
  Check(!request.method.empty(), "a request has a method");
  std::string text = request.method + "\n" + request.path + "\n";
  for (const auto& [name, value] : request.query) text += name + "?" + value;
  for (const auto& [name, value] : request.headers) {
    Check(value.find_first_of(std::string("\r\n\0", 3)) == value.npos,
          "a header has no line break");
    text += name + ":" + value + "\n";
  }
  return text + request.body;
}

// Reads requests from `bytes`, which arrive in parts of `piece` bytes. Stops at
// a refused or an incomplete request. Returns the requests as text.
std::string ReadAll(absl::string_view bytes, size_t piece) {
  Room room(kRoom, 1);
  std::string text;
  size_t came = 0, begin = 0;
  Stage stage;
  do {
    RequestReader reader(kLimits, room.MakeHold("ipv4:10.0.0.1"));
    while (true) {
      const size_t read = reader.Read(bytes.substr(begin, came - begin));
      begin += read;
      Check(begin <= came, "no more is read than there is");
      stage = reader.stage();
      if (stage == Stage::kWhole || stage == Stage::kRefused) break;
      Check(came - begin < kLimits.head_bytes, "little is left unread");
      Check(reader.request().body.size() <=
                static_cast<size_t>(kLimits.body_bytes),
            "a body is within its limit");
      if (came == bytes.size()) break;
      came = std::min(came + piece, bytes.size());
    }
    if (stage == Stage::kWhole) text += Describe(reader.request());
    if (stage == Stage::kRefused) {
      Check(reader.refusal().status >= 400 && reader.refusal().status < 600,
            "a refusal has a status");
      Check(!reader.refusal().message.empty(), "a refusal has a reason");
    }
  } while (stage == Stage::kWhole);
  Check(room.held() == 0, "all room is given back");
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  sfmamba::Input input(data, size);
  const size_t piece = 1 + input.Below(64);
  const std::string bytes = input.text();
  Check(ReadAll(bytes, piece) == ReadAll(bytes, bytes.size() + 1),
        "what is read does not depend on how bytes are cut");
  return 0;
}
