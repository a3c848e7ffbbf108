#include "server/batching/batch_profile_file.h"

#include <cerrno>
#include <cmath>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/settings/replace_file.h"

namespace sfmamba::batching {
namespace {

constexpr absl::string_view kFormat = "sfmamba batch profile 1";
constexpr absl::string_view kColumns =
    "height width type variant images median_us p95_us";
constexpr size_t kHeader = 5;  // Lines.
constexpr size_t kMaxBytes = 4 << 20;
constexpr int kMaxSide = 1 << 16;    // Pixels.
constexpr int kMaxImages = 1 << 16;  // In a batch.
constexpr double kMaxMicroseconds = 3.6e9;

absl::Status LineError(size_t line, absl::string_view expected,
                       absl::string_view found) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": expected ",
                                                 expected, ", got \"",
                                                 found.substr(0, 80), "\""));
}

// Reads a line "name value" of the key.
absl::Status CheckKey(size_t line, absl::string_view name,
                      absl::string_view expected, absl::string_view found) {
  absl::string_view value = found;
  if (!absl::ConsumePrefix(&value, absl::StrCat(name, " "))) {
    return LineError(line, absl::StrCat("\"", name, " ...\""), found);
  }
  if (value == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("measured for the ", name, " \"", value.substr(0, 80),
                   "\", not for \"", expected, "\""));
}

bool ParseInt(absl::string_view text, int low, int high, int* value) {
  return absl::SimpleAtoi(text, value) && *value >= low && *value <= high;
}

bool ParseMicroseconds(absl::string_view text, absl::Duration* value) {
  double microseconds;
  if (!absl::SimpleAtod(text, &microseconds) || !(microseconds > 0) ||
      microseconds > kMaxMicroseconds) {
    return false;
  }
  *value = absl::Microseconds(microseconds);
  return true;
}

bool ParseTime(absl::string_view line, BatchTime* time) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
  if (fields.size() != 7) return false;
  if (fields[2] != "uint8" && fields[2] != "float32") return false;
  time->key.type =
      fields[2] == "uint8" ? ImageType::kUint8 : ImageType::kFloat32;
  return ParseInt(fields[0], 1, kMaxSide, &time->key.height) &&
         ParseInt(fields[1], 1, kMaxSide, &time->key.width) &&
         ParseInt(fields[3], 0, kMaxSide, &time->key.variant) &&
         ParseInt(fields[4], 1, kMaxImages, &time->images) &&
         ParseMicroseconds(fields[5], &time->median) &&
         ParseMicroseconds(fields[6], &time->p95) && time->median <= time->p95;
}

}  // namespace

std::string BatchProfileText(const BatchProfileKey& key,
                             const std::vector<BatchTime>& times) {
  std::string text =
      absl::StrCat(kFormat, "\ncontent ", key.content, "\ndevice ", key.device,
                   "\nbuild ", key.build, "\n", kColumns, "\n");
  for (const BatchTime& time : times) {
    absl::StrAppendFormat(
        &text, "%d %d %s %d %d %.3f %.3f\n", time.key.height, time.key.width,
        time.key.type == ImageType::kUint8 ? "uint8" : "float32",
        time.key.variant, time.images, absl::ToDoubleMicroseconds(time.median),
        absl::ToDoubleMicroseconds(time.p95));
  }
  return text;
}

absl::StatusOr<std::vector<BatchTime>> ParseBatchProfile(
    const BatchProfileKey& key, absl::string_view text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected at most ", kMaxBytes, " bytes, got ", text.size()));
  }
  if (!absl::ConsumeSuffix(&text, "\n")) {
    return absl::InvalidArgumentError("expected a newline at the end");
  }
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (lines[0] != kFormat) {
    return LineError(1, absl::StrCat("\"", kFormat, "\""), lines[0]);
  }
  if (lines.size() < kHeader) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected at least ", kHeader, " lines, got ", lines.size()));
  }
  absl::Status status = CheckKey(2, "content", key.content, lines[1]);
  if (status.ok()) status = CheckKey(3, "device", key.device, lines[2]);
  if (status.ok()) status = CheckKey(4, "build", key.build, lines[3]);
  if (!status.ok()) return status;
  if (lines[4] != kColumns) {
    return LineError(5, absl::StrCat("\"", kColumns, "\""), lines[4]);
  }
  std::vector<BatchTime> times;
  for (size_t i = kHeader; i < lines.size(); ++i) {
    BatchTime time;
    if (!ParseTime(lines[i], &time)) {
      return LineError(i + 1, "a batch's time", lines[i]);
    }
    times.push_back(time);
  }
  return times;
}

absl::StatusOr<std::vector<BatchTime>> ReadBatchProfile(
    const BatchProfileKey& key, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::ErrnoToStatus(errno, path);
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), text.size());
  if (in.bad()) return absl::ErrnoToStatus(errno, path);
  text.resize(in.gcount());
  absl::StatusOr<std::vector<BatchTime>> times = ParseBatchProfile(key, text);
  if (times.ok()) return times;
  return absl::Status(times.status().code(),
                      absl::StrCat(path, ": ", times.status().message()));
}

absl::Status WriteBatchProfile(const BatchProfileKey& key,
                               const std::vector<BatchTime>& times,
                               const std::string& path) {
  return server::ReplaceFile(path, BatchProfileText(key, times));
}

}  // namespace sfmamba::batching
