#include "server/http/request_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "httplib.h"
#include "server/http/gzip.h"

namespace sfmamba::http {
namespace {

using BeastError = boost::beast::http::error;

// The number of bytes that the reader reserves when a chunked body begins. The
// reservation grows with the body.
constexpr int64_t kFirstRoom = 16 << 10;
// The maximum size of all chunk extensions of a body, in bytes.
constexpr size_t kMostExtensions = 16 << 10;

bool HasControl(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_iscntrl(c); });
}

// Decodes percent-encoded text. This file uses only this function of
// cpp-httplib. The Server class of cpp-httplib would misread a query value that
// contains "=".
std::string Decode(absl::string_view text, bool plus_is_space) {
  return httplib::detail::decode_url(std::string(text), plus_is_space);
}

// Removes the scheme and the host of a target. For example, "http://host:1/a?b"
// becomes "/a?b".
absl::string_view WithoutHost(absl::string_view target) {
  absl::string_view rest = target;
  if (!absl::ConsumePrefix(&rest, "http://") &&
      !absl::ConsumePrefix(&rest, "https://")) {
    return target;
  }
  const size_t end = rest.find_first_of("/?");
  return end == rest.npos ? "/" : rest.substr(end);
}

}  // namespace

RequestReader::RequestReader(const Limits& limits, Room::Hold hold)
    : limits_(limits), hold_(std::move(hold)) {
  header_limit(limits.head_bytes);
  body_limit(limits.body_bytes);
}

size_t RequestReader::Read(absl::string_view bytes) {
  size_t read = 0;
  if (stage_ == Stage::kEmpty && !after_blank_) {
    if (bytes == "\r") return 0;
    // Some clients send an extra line break after a body.
    after_blank_ = absl::StartsWith(bytes, "\r\n");
    if (after_blank_) read = 2;
  }
  if (read == bytes.size()) return read;
  Error error;
  while (read < bytes.size() && !is_done() && !error) {
    const bool is_head = !is_header_done();
    const size_t part = put(
        boost::asio::buffer(bytes.data() + read, bytes.size() - read), error);
    if (is_head) head_bytes_ += part;
    read += part;
  }
  // In each call of Read(), the parser checks only how many bytes of the head
  // this call contains. The code below checks the size of the whole head, which
  // may arrive in several calls. It also checks the size of two incomplete
  // parts of a chunked body:
  // - the line before a chunk (chunk size and extensions)
  // - the trailers (headers after the last chunk)
  const size_t left = bytes.size() - read;
  if (!error || error == BeastError::need_more) {
    if (head_bytes_ > limits_.head_bytes ||
        (!is_header_done() && head_bytes_ + left >= limits_.head_bytes)) {
      error = BeastError::header_limit;
    } else if (error) {
      error = left < limits_.head_bytes ? Error() : BeastError::bad_chunk;
    }
  }
  if (error) {
    stage_ = Stage::kRefused;
    if (refusal_.status == 0) refusal_ = RefusalOf(error);
    request_.body = std::string();
    hold_.Release();
  } else if (is_done()) {
    stage_ = Stage::kWhole;
  } else {
    stage_ = is_header_done() ? Stage::kBody : Stage::kHead;
  }
  return read;
}

Refusal RequestReader::RefusalOf(Error error) const {
  if (error == BeastError::header_limit) {
    return {431, absl::StrCat("expected at most ", limits_.head_bytes,
                              " bytes of request line and headers, got more")};
  }
  if (error == BeastError::body_limit) {
    return {413, absl::StrCat("expected at most ", limits_.body_bytes,
                              " bytes as a request's body, got more")};
  }
  if (error == BeastError::bad_version) {
    return {505, "expected a line METHOD TARGET HTTP/1.1 or HTTP/1.0"};
  }
  return {400, absl::StrCat("expected a request of HTTP/1.1, got: ",
                            error.message())};
}

void RequestReader::Refuse(int status, std::string message, Error& error) {
  refusal_ = {status, std::move(message)};
  error = BeastError::bad_value;  // This error stops the parser.
}

void RequestReader::on_request_impl(boost::beast::http::verb, Text method,
                                    Text target, int version, Error& error) {
  version_ = version;
  request_.method = std::string(method);
  if (!ParseTarget(std::string(target), &request_.path, &request_.query)) {
    Refuse(400,
           "expected a target of visible ASCII without encoded control "
           "characters",
           error);
  }
}

void RequestReader::on_field_impl(Field field, Text name, Text value,
                                  Error& error) {
  // A field after the headers is a trailer. Trailers are ignored.
  if (is_header_done()) return;
  const std::string text(value);
  if (field == Field::expect) {
    if (!absl::EqualsIgnoreCase(text, "100-continue")) {
      return Refuse(417, "expected Expect: 100-continue", error);
    }
    expects_continue_ = version_ == 11;
  }
  request_.headers.emplace(absl::AsciiStrToLower(std::string(name)), text);
  if (field == Field::host && request_.headers.count("host") > 1) {
    Refuse(400, "expected one Host, got several", error);
  }
  if (field == Field::transfer_encoding) {
    if (version_ < 11) {
      Refuse(400, "expected no Transfer-Encoding in HTTP/1.0", error);
    } else if (!absl::EqualsIgnoreCase(text, "chunked")) {
      Refuse(501, "expected Transfer-Encoding: chunked", error);
    }
  }
}

void RequestReader::on_header_impl(Error& error) {
  const int64_t body_bytes = content_length().value_or(0);
  if (body_bytes == 0 && !chunked()) return;
  if (PackingOf(request_) == Packing::kUnknown) {
    return Refuse(
        415, "expected no Content-Encoding, or one of gzip and deflate", error);
  }
  if (limits_.body_bytes == 0) {
    return Refuse(413, "expected a request without a body", error);
  }
  TakeRoom(body_bytes, error);
}

void RequestReader::on_chunk_header_impl(uint64_t, Text extensions,
                                         Error& error) {
  extension_bytes_ += extensions.size();
  // The value of a chunk extension may be in quotes. The parser accepts every
  // byte inside these quotes. Other HTTP software could read some of these
  // bytes as the end of the line. The server therefore refuses control
  // characters.
  const bool is_text =
      std::all_of(extensions.begin(), extensions.end(),
                  [](char c) { return !absl::ascii_iscntrl(c) || c == '\t'; });
  if (!is_text || extension_bytes_ > kMostExtensions) {
    error = BeastError::bad_chunk_extension;
  }
}

size_t RequestReader::on_chunk_body_impl(uint64_t, Text bytes, Error& error) {
  return on_body_impl(bytes, error);
}

size_t RequestReader::on_body_impl(Text bytes, Error& error) {
  const int64_t size = request_.body.size() + bytes.size();
  if (size > hold_->bytes) {
    TakeRoom(std::max({size, kFirstRoom,
                       std::min(2 * hold_->bytes, limits_.body_bytes)}),
             error);
    if (error) return 0;
  }
  request_.body.append(bytes.data(), bytes.size());
  return bytes.size();
}

bool RequestReader::UseRoom(Room::Hold hold) {
  const int64_t bytes = hold_->bytes;
  hold_ = std::move(hold);
  if (bytes == 0) return true;
  Error error;
  TakeRoom(bytes, error);
  if (error) {
    stage_ = Stage::kRefused;
    request_.body = std::string();
  }
  return !error;
}

void RequestReader::TakeRoom(int64_t body_bytes, Error& error) {
  if (hold_.Resize(body_bytes)) return request_.body.reserve(body_bytes);
  Refuse(503,
         absl::StrCat("no room for ", body_bytes,
                      " bytes of a request's body; ask again later"),
         error);
}

bool ParseTarget(absl::string_view target, std::string* path,
                 std::multimap<std::string, std::string>* query) {
  if (target.empty() || !std::all_of(target.begin(), target.end(), [](char c) {
        return absl::ascii_isgraph(c);
      })) {
    return false;
  }
  target = WithoutHost(target.substr(0, target.find('#')));
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  *path = Decode(parts.first, /*plus_is_space=*/false);
  if (HasControl(*path)) return false;
  for (absl::string_view field :
       absl::StrSplit(parts.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    query->emplace(Decode(pair.first, /*plus_is_space=*/true),
                   Decode(pair.second, /*plus_is_space=*/true));
  }
  return true;
}

}  // namespace sfmamba::http
