#include "server/observability/log.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/json.h"

namespace sfmamba::observability {
namespace {

// The maximum number of log lines per second for refused requests with the same
// reason.
constexpr int kRefusedLines = 10;

absl::string_view LevelName(LogLevel level) {
  static constexpr absl::string_view kNames[] = {"debug", "info", "warning",
                                                 "error"};
  return kNames[static_cast<int>(level)];
}

absl::string_view ModuleName(LogModule module) {
  static constexpr absl::string_view kNames[kLogModuleCount] = {
      "server", "models", "requests"};
  return kNames[static_cast<int>(module)];
}

absl::StatusOr<LogLevel> ParseLevel(absl::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info" || name.empty()) return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return absl::InvalidArgumentError(absl::StrCat(
      "log_level: got \"", name, "\", expected debug, info, warning or error"));
}

absl::StatusOr<LogModule> ParseModule(absl::string_view name) {
  for (int i = 0; i < kLogModuleCount; ++i) {
    if (name == ModuleName(LogModule(i))) return LogModule(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("log_level: got the part \"", name,
                   "\", expected server, models or requests"));
}

}  // namespace

absl::StatusOr<LogLevels> ParseLogLevels(absl::string_view text) {
  LogLevels levels(LogLevel::kInfo);
  bool is_first = true;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t equals = part.find('=');
    const bool of_all = equals == absl::string_view::npos;
    const absl::StatusOr<LogLevel> level =
        ParseLevel(of_all ? part : part.substr(equals + 1));
    if (!level.ok()) return level.status();
    if (of_all && !is_first) {
      return absl::InvalidArgumentError(
          absl::StrCat("log_level: got \"", part,
                       "\" after the first, expected part=level"));
    }
    is_first = false;
    if (of_all) {
      levels = *level;
      continue;
    }
    const absl::StatusOr<LogModule> module =
        ParseModule(part.substr(0, equals));
    if (!module.ok()) return module.status();
    levels.of[static_cast<int>(*module)] = *level;
  }
  return levels;
}

absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view name) {
  if (name == "json" || name.empty()) return LogFormat::kJson;
  if (name == "text") return LogFormat::kText;
  return absl::InvalidArgumentError(
      absl::StrCat("log_format: got \"", name, "\", expected json or text"));
}

bool LineSampler::Admit(absl::Time now) {
  // A new second also begins if the wall clock is set back.
  if (now < second_ || now - second_ >= absl::Seconds(1)) {
    second_ = now;
    in_second_ = 0;
  }
  ++in_second_;
  if (in_second_ <= burst_) return true;
  if (every_ > 0 && in_second_ % every_ == 0) return true;
  ++skipped_;
  return false;
}

int LineSampler::TakeSkipped() { return std::exchange(skipped_, 0); }

Logger::Logger(std::FILE* out, const LogLevels& levels, LogFormat format,
               const LogWriter::Options& writer)
    : format_(format), writer_(fileno(out), writer) {
  SetLevels(levels);
}

void Logger::SetLevels(const LogLevels& levels) {
  for (int i = 0; i < kLogModuleCount; ++i) {
    levels_[i].store(levels.of[i], std::memory_order_relaxed);
  }
}

void Logger::Access(Fields fields) {
  if (!IsWritten(LogLevel::kInfo, LogModule::kRequests)) return;
  int skipped;
  {
    absl::MutexLock lock(&mu_);
    if (!access_.Admit(absl::Now())) return;
    skipped = access_.TakeSkipped();
  }
  Write(LogLevel::kInfo, LogModule::kRequests, "request", fields, skipped);
}

void Logger::AccessRefused(absl::string_view reason, Fields fields) {
  if (!IsWritten(LogLevel::kInfo, LogModule::kRequests)) return;
  {
    absl::MutexLock lock(&mu_);
    LineSampler& sampler =
        refused_.try_emplace(reason, kRefusedLines, 0).first->second;
    if (!sampler.Admit(absl::Now())) return;
  }
  Write(LogLevel::kInfo, LogModule::kRequests, "request", fields);
}

void Logger::ReportLeftOut() {
  std::vector<std::pair<std::string, int>> left_out;
  {
    absl::MutexLock lock(&mu_);
    for (auto& [reason, sampler] : refused_) {
      const int lines = sampler.TakeSkipped();
      if (lines > 0) left_out.emplace_back(reason, lines);
    }
  }
  // Writes the lines without holding the lock, so that requests do not wait.
  for (const auto& [reason, lines] : left_out) {
    Write(LogLevel::kInfo, LogModule::kRequests, "requests were refused",
          {{"reason", reason}, {"lines_left_out", lines}});
  }
}

void Logger::Write(LogLevel level, LogModule module, absl::string_view msg,
                   Fields fields, int skipped) {
  if (!IsWritten(level, module)) return;
  const std::string ts = absl::FormatTime("%Y-%m-%d%ET%H:%M:%E6SZ", absl::Now(),
                                          absl::UTCTimeZone());
  std::string line;
  const auto add = [this, &line](const LogField& field) {
    if (field.quoted() && field.value().empty()) return;
    if (format_ == LogFormat::kJson) {
      absl::StrAppend(&line, ",", base::JsonString(field.key()), ":",
                      field.quoted() ? base::JsonString(field.value())
                                     : std::string(field.value()));
    } else {
      absl::StrAppend(&line, " ", field.key(), "=", field.value());
    }
  };
  if (format_ == LogFormat::kJson) {
    line = absl::StrCat("{\"ts\":\"", ts, "\",\"level\":\"", LevelName(level),
                        "\",\"module\":\"", ModuleName(module),
                        "\",\"msg\":", base::JsonString(msg));
  } else {
    line = absl::StrFormat("%s %-7s %-8s %s", ts, LevelName(level),
                           ModuleName(module), msg);
  }
  for (const LogField& field : fields) add(field);
  if (skipped > 0) add(LogField("lines_left_out", skipped));
  if (format_ == LogFormat::kJson) line.push_back('}');
  line.push_back('\n');
  writer_.Write(std::move(line), level == LogLevel::kError);
}

}  // namespace sfmamba::observability
