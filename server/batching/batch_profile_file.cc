#include "server/batching/batch_profile_file.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

namespace sfmamba::batching {
namespace {

constexpr int kMaxSide = 1 << 16;    // Pixels.
constexpr int kMaxImages = 1 << 16;  // In a batch.
constexpr double kMaxMicroseconds = 3.6e9;

// Return whether `text` is a number, or a time, of the range.
bool Parse(absl::string_view text, int max, int* number) {
  return absl::SimpleAtoi(text, number) && *number >= 1 && *number <= max;
}

bool Parse(absl::string_view text, absl::Duration* time) {
  double microseconds = 0;
  if (!absl::SimpleAtod(text, &microseconds) ||
      !(microseconds > 0 && microseconds <= kMaxMicroseconds)) {  // No NaN.
    return false;
  }
  *time = absl::Microseconds(microseconds);
  return true;
}

bool ParseLine(absl::string_view line, BatchTime* time) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 6 || (words[2] != "uint8" && words[2] != "float32")) {
    return false;
  }
  time->key.type =
      words[2] == "uint8" ? ImageType::kUint8 : ImageType::kFloat32;
  return Parse(words[0], kMaxSide, &time->key.height) &&
         Parse(words[1], kMaxSide, &time->key.width) &&
         Parse(words[3], kMaxImages, &time->images) &&
         Parse(words[4], &time->median) && Parse(words[5], &time->p95) &&
         time->median <= time->p95;
}

}  // namespace

std::string BatchTimesText(const std::vector<BatchTime>& times) {
  std::string text;
  for (const BatchTime& time : times) {
    absl::StrAppend(
        &text, time.key.height, " ", time.key.width,
        time.key.type == ImageType::kUint8 ? " uint8 " : " float32 ",
        time.images, " ", absl::ToDoubleMicroseconds(time.median), " ",
        absl::ToDoubleMicroseconds(time.p95), "\n");
  }
  return text;
}

absl::StatusOr<std::vector<BatchTime>> ParseBatchTimes(absl::string_view text) {
  std::vector<BatchTime> times;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (ParseLine(line, &times.emplace_back())) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "line ", times.size(), ": expected the time of a batch, got \"",
        line.substr(0, 200), "\""));
  }
  return times;
}

}  // namespace sfmamba::batching
