#include "server/http/chunk_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace sfmamba::http {
namespace {

// 60 bits: no sum of them and a body's size overflows.
constexpr size_t kMaxDigits = 15;
constexpr size_t kMaxLine = 4096;
// Of extensions and trailers of all a body's chunks.
constexpr size_t kMaxDropped = 16 << 10;

}  // namespace

size_t ChunkReader::Read(absl::string_view bytes,
                         absl::FunctionRef<bool(absl::string_view)> append) {
  size_t read = 0;
  while (read < bytes.size() && state_ != State::kDone &&
         state_ != State::kBad) {
    if (state_ != State::kData) {
      ReadLine(bytes[read++]);
      continue;
    }
    const absl::string_view data = bytes.substr(read, left_);
    read += data.size();
    left_ -= data.size();
    if (left_ == 0) state_ = State::kDataEnd;
    if (!append(data)) return read;
  }
  return read;
}

void ChunkReader::ReadLine(char c) {
  const bool after_return = !line_.empty() && line_.back() == '\r';
  const bool is_text = !absl::ascii_iscntrl(c) || c == '\t' || c == '\r';
  if (line_.size() >= kMaxLine || (c == '\n') != after_return ||
      (c != '\n' && !is_text)) {
    state_ = State::kBad;
    return;
  }
  line_.push_back(c);
  if (c == '\n') EndLine();
}

void ChunkReader::EndLine() {
  const std::string whole = std::move(line_);
  line_.clear();
  const absl::string_view line = absl::StripSuffix(whole, "\r\n");
  if (state_ == State::kDataEnd) {
    state_ = line.empty() ? State::kSize : State::kBad;
    return;
  }
  if (state_ == State::kTrailer) {
    dropped_ += line.size();
    if (line.empty()) state_ = State::kDone;
  } else {
    const absl::string_view digits = line.substr(0, line.find(';'));
    const bool is_size =
        !digits.empty() && digits.size() <= kMaxDigits &&
        std::all_of(digits.begin(), digits.end(),
                    [](char c) { return absl::ascii_isxdigit(c); }) &&
        absl::SimpleHexAtoi(digits, &left_);
    dropped_ += line.size() - digits.size();
    state_ = left_ > 0 ? State::kData : State::kTrailer;
    if (!is_size) state_ = State::kBad;
  }
  if (dropped_ > kMaxDropped) state_ = State::kBad;
}

}  // namespace sfmamba::http
