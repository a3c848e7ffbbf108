#include "server/log.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "server/utf8.h"

namespace sfmamba {
namespace {

absl::string_view LevelName(LogLevel level) {
  static constexpr absl::string_view kNames[] = {"debug", "info", "warning",
                                                 "error"};
  return kNames[static_cast<int>(level)];
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info" || name.empty()) return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return absl::InvalidArgumentError(absl::StrCat(
      "log_level: got \"", name, "\", expected debug, info, warning or error"));
}

absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view name) {
  if (name == "json" || name.empty()) return LogFormat::kJson;
  if (name == "text") return LogFormat::kText;
  return absl::InvalidArgumentError(
      absl::StrCat("log_format: got \"", name, "\", expected json or text"));
}

bool LineSampler::Admit(absl::Time now) {
  if (now - second_ >= absl::Seconds(1)) {
    second_ = now;
    in_second_ = 0;
  }
  ++in_second_;
  if (in_second_ <= burst_ || in_second_ % burst_ == 0) return true;
  ++skipped_;
  return false;
}

int LineSampler::TakeSkipped() { return std::exchange(skipped_, 0); }

Logger::Logger(std::FILE* out, LogLevel level, LogFormat format)
    : out_(out), level_(level), format_(format) {}

void Logger::Access(Fields fields) {
  if (level_ > LogLevel::kInfo) return;
  int skipped;
  {
    absl::MutexLock lock(&mu_);
    if (!access_.Admit(absl::Now())) return;
    skipped = access_.TakeSkipped();
  }
  Write(LogLevel::kInfo, "request", fields, skipped);
}

void Logger::Write(LogLevel level, absl::string_view msg, Fields fields,
                   int skipped) {
  if (level < level_) return;
  const std::string ts = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E6SZ", absl::Now(),
                                          absl::UTCTimeZone());
  std::string line;
  const auto add = [this, &line](const LogField& field) {
    if (field.quoted() && field.value().empty()) return;
    if (format_ == LogFormat::kJson) {
      absl::StrAppend(&line, ",", JsonString(field.key()), ":",
                      field.quoted() ? JsonString(field.value())
                                     : std::string(field.value()));
    } else {
      absl::StrAppend(&line, " ", field.key(), "=", field.value());
    }
  };
  if (format_ == LogFormat::kJson) {
    line = absl::StrCat("{\"ts\":\"", ts, "\",\"level\":\"", LevelName(level),
                        "\",\"msg\":", JsonString(msg));
  } else {
    line = absl::StrFormat("%s %-7s %s", ts, LevelName(level), msg);
  }
  for (const LogField& field : fields) add(field);
  if (skipped > 0) add(LogField("lines_left_out", skipped));
  if (format_ == LogFormat::kJson) line.push_back('}');
  line.push_back('\n');
  absl::MutexLock lock(&mu_);
  std::fwrite(line.data(), 1, line.size(), out_);
  std::fflush(out_);
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const int length = Utf8CharacterLength(text);
    const char c = text.front();
    if (length == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (length == 1 && (static_cast<unsigned char>(c) < 0x20)) {
      absl::StrAppendFormat(&json, "\\u%04x", c);
    } else {
      json.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  json.push_back('"');
  return json;
}

}  // namespace sfmamba
