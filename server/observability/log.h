#ifndef SFMAMBA_SERVER_OBSERVABILITY_LOG_H_
#define SFMAMBA_SERVER_OBSERVABILITY_LOG_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/observability/log_writer.h"

namespace sfmamba::observability {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kJson, kText };

// The parts of the server whose log levels can be set separately. Their names
// in settings are "server", "models" and "requests".
enum class LogModule { kServer, kModels, kRequests };
inline constexpr int kLogModuleCount = 3;

// The lowest level that is written, for each module.
struct LogLevels {
  LogLevels(LogLevel all) { of.fill(all); }  // NOLINT: implicit by design.

  std::array<LogLevel, kLogModuleCount> of;
};

// Parses log levels such as "info,models=debug,requests=warning". The first
// part may be a level without a module, which then applies to all modules. Each
// further part sets the level of one module. The levels are "debug", "info",
// "warning" and "error". An empty string means the default, info. If the text
// is malformed, returns INVALID_ARGUMENT with the allowed values.
absl::StatusOr<LogLevels> ParseLogLevels(absl::string_view text);
// Parses "json" or "text". An empty string means the default, json.
absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view name);

// A key and a value in a log line. A text value refers to the caller's string,
// which must outlive this object.
class LogField {
 public:
  LogField(absl::string_view key, absl::string_view text)
      : key_(key), text_(text), quoted_(true) {}
  LogField(absl::string_view key, const char* text)
      : LogField(key, absl::string_view(text)) {}
  LogField(absl::string_view key, const std::string& text)
      : LogField(key, absl::string_view(text)) {}
  template <typename Number,
            std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  LogField(absl::string_view key, Number number)
      : key_(key), number_(absl::StrCat(number)), quoted_(false) {}

  absl::string_view key() const { return key_; }
  absl::string_view value() const { return quoted_ ? text_ : number_; }
  bool quoted() const { return quoted_; }

 private:
  absl::string_view key_;
  absl::string_view text_;
  std::string number_;
  bool quoted_;
};

// Decides which lines are written. In each second, admits the first `burst`
// lines. After these, admits every line whose number within the second is a
// multiple of `every`. If `every` is 0, admits no further lines. Callers pass
// the time. Not thread-safe.
class LineSampler {
 public:
  LineSampler(int burst, int every) : burst_(burst), every_(every) {}

  // Returns true if the line that arrives at `now` should be written.
  bool Admit(absl::Time now);
  // Returns the number of lines skipped since the last call.
  int TakeSkipped();

 private:
  const int burst_;
  const int every_;
  absl::Time second_ = absl::InfinitePast();
  int in_second_ = 0;
  int skipped_ = 0;
};

// Writes one line per event. If the format is kJson, the line is a JSON object
// with the keys "ts", "level", "module" and "msg", and with the fields of the
// event. If the format is kText, the line is text for terminals.
//
// Thread-safe. Invalid UTF-8 is replaced, so that every line is valid JSON.
// Callers never wait, because a background thread writes the lines. If the
// output is blocked, lines are dropped and counted. Lines of level kError are
// dropped last.
//
//   log.Info(LogModule::kModels, "model is ready", {{"model", name}});
class Logger {
 public:
  using Fields = std::initializer_list<LogField>;

  // `out` must outlive the logger and must have no buffered output.
  Logger(std::FILE* out, const LogLevels& levels, LogFormat format,
         const LogWriter::Options& writer = {});

  void Debug(LogModule module, absl::string_view msg, Fields fields = {}) {
    Write(LogLevel::kDebug, module, msg, fields);
  }
  void Info(LogModule module, absl::string_view msg, Fields fields = {}) {
    Write(LogLevel::kInfo, module, msg, fields);
  }
  void Warning(LogModule module, absl::string_view msg, Fields fields = {}) {
    Write(LogLevel::kWarning, module, msg, fields);
  }
  void Error(LogModule module, absl::string_view msg, Fields fields = {}) {
    Write(LogLevel::kError, module, msg, fields);
  }
  // Writes the log line of a successful request, with level kInfo and module
  // kRequests. In each second, writes the first 100 lines and then every 100th
  // line. If lines were skipped, the next line contains their number.
  void Access(Fields fields) ABSL_LOCKS_EXCLUDED(mu_);
  // Writes the log line of a request that failed with `reason`. For each
  // reason, writes up to 10 lines per second. ReportLeftOut() reports how many
  // further lines were skipped. `reason` must come from a small fixed set.
  void AccessRefused(absl::string_view reason, Fields fields)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Writes one line for each reason whose lines AccessRefused() skipped since
  // the last call. The line contains the number of skipped lines. Must be
  // called periodically.
  void ReportLeftOut() ABSL_LOCKS_EXCLUDED(mu_);
  // Writes the log line of a request that failed because of an error in the
  // server. The level is kError, and lines are never skipped.
  void AccessFailed(Fields fields) {
    Write(LogLevel::kError, LogModule::kRequests, "request failed", fields);
  }

  // Sets the levels that are written from now on.
  void SetLevels(const LogLevels& levels);

  // Waits until all lines are written. Returns false if `limit` passes first.
  // Intended for process exit and tests.
  bool Flush(absl::Duration limit) const { return writer_.Flush(limit); }
  // Returns the number of lines dropped since the last call.
  int64_t TakeDropped() { return writer_.TakeDropped(); }

 private:
  bool IsWritten(LogLevel level, LogModule module) const {
    return level >=
           levels_[static_cast<int>(module)].load(std::memory_order_relaxed);
  }
  void Write(LogLevel level, LogModule module, absl::string_view msg,
             Fields fields, int skipped = 0);

  std::array<std::atomic<LogLevel>, kLogModuleCount> levels_;
  const LogFormat format_;
  absl::Mutex mu_;
  LineSampler access_ ABSL_GUARDED_BY(mu_){100, 100};
  // For each reason of failure, the sampler that limits the log lines of the
  // requests that failed for this reason.
  absl::flat_hash_map<std::string, LineSampler> refused_ ABSL_GUARDED_BY(mu_);
  LogWriter writer_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_LOG_H_
