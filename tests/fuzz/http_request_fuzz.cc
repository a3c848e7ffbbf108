// Bytes of a connection over HTTP: requests are read or refused, the same
// however the bytes are cut, and within their limits.
#include <cstdint>
#include <memory>
#include <string>

#include "server/http/request_reader.h"
#include "tests/fuzz/check.h"

namespace {

using sfmamba::Check;
using sfmamba::http::RequestReader;
using sfmamba::http::Room;
using Stage = RequestReader::Stage;

constexpr RequestReader::Limits kLimits = {2048, 4096};
constexpr int64_t kRoom = 32 << 10;

// What was read, as text.
std::string Describe(RequestReader& reader) {
  if (reader.stage() == Stage::kRefused) {
    return "refused: " + std::to_string(reader.refusal().status) +
           reader.refusal().message;
  }
  const auto& request = reader.head().request;
  std::string text = request.method + "\n" + request.path + "\n";
  for (const auto& [name, value] : request.query) text += name + "?" + value;
  for (const auto& [name, value] : request.headers) {
    Check(value.find_first_of(std::string("\r\n\0", 3)) == value.npos,
          "a header has no line break");
    text += name + ":" + value + "\n";
  }
  return text + request.body;
}

// Reads all requests in `bytes`, in pieces of `piece` bytes.
std::string ReadAll(absl::string_view bytes, size_t piece) {
  auto room = std::make_shared<Room>(kRoom, 1);
  std::string text;
  while (!bytes.empty()) {
    RequestReader reader(kLimits, Room::Hold(room, "ipv4:10.0.0.1:1"));
    while (!bytes.empty() && reader.stage() != Stage::kWhole &&
           reader.stage() != Stage::kRefused) {
      const absl::string_view next = bytes.substr(0, piece);
      const size_t read = reader.Read(next);
      Check(read <= next.size(), "no more is read than there is");
      Check(read == next.size() || reader.stage() == Stage::kWhole ||
                reader.stage() == Stage::kRefused,
            "it reads on until the request ends");
      bytes.remove_prefix(read);
      Check(reader.head().request.body.size() <=
                static_cast<size_t>(kLimits.body_bytes),
            "a body is within its limit");
    }
    if (reader.stage() == Stage::kWhole) {
      text += Describe(reader);
      Check(!reader.head().request.method.empty(), "a request has a method");
    }
    if (reader.stage() == Stage::kRefused) {
      Check(reader.refusal().status >= 400 && reader.refusal().status < 600,
            "a refusal has a status");
      text += Describe(reader);
      break;
    }
  }
  Check(room->held() == 0, "all room is given back");
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
