#include "server/http/request_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sfmamba::http {
namespace {

// Of a body that comes in chunks, at first.
constexpr int64_t kFirstRoom = 16 << 10;

// The packing that a body has, or an empty string.
std::string PackingOf(const HttpRequest& request) {
  const auto [begin, end] = request.headers.equal_range("content-encoding");
  for (auto it = begin; it != end; ++it) {
    if (!it->second.empty() &&
        !absl::EqualsIgnoreCase(it->second, "identity")) {
      return it->second;
    }
  }
  return "";
}

}  // namespace

size_t RequestReader::Read(absl::string_view bytes) {
  size_t read = 0;
  if (stage_ == Stage::kEmpty || stage_ == Stage::kHead) read = ReadHead(bytes);
  if (stage_ == Stage::kBody) read += ReadBody(bytes.substr(read));
  return read;
}

size_t RequestReader::ReadHead(absl::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    const bool after_return = !text_.empty() && text_.back() == '\r';
    if ((c == '\n') != after_return) {
      Refuse({400,
              "expected lines of a request that end with CR LF, got a CR "
              "or LF alone"});
      return i;
    }
    if (absl::ascii_iscntrl(c) && c != '\r' && c != '\n' && c != '\t') {
      Refuse({400, absl::StrCat("expected no control character before a "
                                "request's body, got byte ",
                                static_cast<int>(c))});
      return i;
    }
    text_.push_back(c);
    // Some clients send one line break more after a body.
    if (text_ == "\r\n" && !std::exchange(after_blank_, true)) {
      text_.clear();
      continue;
    }
    stage_ = Stage::kHead;
    const bool ends = c == '\n' && absl::EndsWith(text_, "\r\n\r\n");
    if (text_.size() > limits_.head_bytes ||
        (text_.size() == limits_.head_bytes && !ends)) {
      Refuse(
          {431, absl::StrCat("expected at most ", limits_.head_bytes,
                             " bytes of request line and headers, got more")});
      return i + 1;
    }
    if (ends) {
      EndHead();
      return i + 1;
    }
  }
  return bytes.size();
}

void RequestReader::EndHead() {
  auto refusal = ParseHead(std::exchange(text_, std::string()), &head_);
  if (refusal.has_value()) return Refuse(*std::move(refusal));
  if (!head_.is_chunked && head_.body_bytes == 0) {
    stage_ = Stage::kWhole;
    return;
  }
  const std::string packing = PackingOf(head_.request);
  if (!packing.empty()) {
    return Refuse(
        {415, absl::StrCat("expected a body without Content-Encoding, "
                           "got ",
                           packing)});
  }
  if (limits_.body_bytes == 0) {
    return Refuse({413, "expected a request without a body"});
  }
  if (!IsAllowed(head_.body_bytes) || !TakeRoom(head_.body_bytes)) return;
  stage_ = Stage::kBody;
}

size_t RequestReader::ReadBody(absl::string_view bytes) {
  if (!head_.is_chunked) {
    bytes = bytes.substr(0, body_left());
    Append(bytes);
    if (body_left() == 0) stage_ = Stage::kWhole;
    return bytes.size();
  }
  const size_t read = chunks_.Read(
      bytes, [this](absl::string_view data) { return Append(data); });
  if (stage_ == Stage::kRefused) return read;
  if (chunks_.state() == ChunkReader::State::kDone) stage_ = Stage::kWhole;
  if (chunks_.state() == ChunkReader::State::kBad) {
    Refuse({400,
            "expected a body in the chunked coding, with little but data "
            "in it"});
  }
  return read;
}

bool RequestReader::Append(absl::string_view bytes) {
  const int64_t size = body_read_ + bytes.size();
  if (!IsAllowed(size)) return false;
  if (size > hold_.bytes() &&
      !TakeRoom(std::max({size, kFirstRoom,
                          std::min(2 * hold_.bytes(), limits_.body_bytes)}))) {
    return false;
  }
  head_.request.body.append(bytes.data(), bytes.size());
  body_read_ = size;
  return true;
}

bool RequestReader::IsAllowed(int64_t body_bytes) {
  if (body_bytes <= limits_.body_bytes) return true;
  Refuse({413, absl::StrCat("expected at most ", limits_.body_bytes,
                            " bytes as a request's body, got ",
                            head_.is_chunked ? "at least " : "", body_bytes)});
  return false;
}

bool RequestReader::TakeRoom(int64_t body_bytes) {
  if (!hold_.Take(body_bytes - hold_.bytes())) {
    Refuse({503, absl::StrCat("no room for ", body_bytes,
                              " bytes of a request's body; ask again later")});
    return false;
  }
  head_.request.body.reserve(body_bytes);
  return true;
}

void RequestReader::Refuse(Refusal refusal) {
  stage_ = Stage::kRefused;
  refusal_ = std::move(refusal);
  head_.request.body = std::string();
  hold_.Release();
}

}  // namespace sfmamba::http
