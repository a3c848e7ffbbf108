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

// The parts of the server whose log levels can be set separately: "server",
// "models" and "requests".
enum class LogModule { kServer, kModels, kRequests };
inline constexpr int kLogModuleCount = 3;

// For each module, the lowest level that is written.
struct LogLevels {
  LogLevels(LogLevel all) { of.fill(all); }  // NOLINT: levels can be alike.

  std::array<LogLevel, kLogModuleCount> of;
};

// Parses a level for all modules, "debug", "info", "warning" or "error", which
// levels of single modules may follow: "info,models=debug,requests=warning". An
// empty text is the default, info. INVALID_ARGUMENT names the choices.
absl::StatusOr<LogLevels> ParseLogLevels(absl::string_view text);
// Parses "json" or "text". An empty name is the default, json.
absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view name);

// One key and value of a line. It holds a view of a text value, so it is for
// passing to a logger, not for keeping.
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

// Admits the first `burst` lines of each second and then every `every`-th line
// of it; 0: no more. Callers pass the time. Not thread-safe.
class LineSampler {
 public:
  LineSampler(int burst, int every) : burst_(burst), every_(every) {}

  // Whether a line that arrives at `now` is written.
  bool Admit(absl::Time now);
  // Returns the number of lines left out since the last call.
  int TakeSkipped();

 private:
  const int burst_;
  const int every_;
  absl::Time second_ = absl::InfinitePast();
  int in_second_ = 0;
  int skipped_ = 0;
};

// Writes one line per event: a JSON object with ts, level, module, msg and the
// fields, or text for terminals.
//
// Thread-safe. Bytes that are not UTF-8 are replaced, so each line is valid
// JSON. No caller waits: a thread writes the lines, and those that it cannot
// write, because nobody reads them, are dropped and counted; errors last.
//
//   log.Info(LogModule::kModels, "model is ready", {{"model", name}});
class Logger {
 public:
  using Fields = std::initializer_list<LogField>;

  // `out` is used, not owned, and has nothing buffered.
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
  // Writes the line of a finished request at level kInfo of kRequests. Up to
  // 100 lines a second are written, then a sample, with the number left out.
  void Access(Fields fields) ABSL_LOCKS_EXCLUDED(mu_);
  // Writes the line of a request that ended with an error of `reason`: up to 10
  // lines a second for each reason. ReportLeftOut() counts the others. Reasons
  // are the server's own, so they are few.
  void AccessRefused(absl::string_view reason, Fields fields)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Writes how many lines of each reason were left out since the last call. To
  // be called now and then.
  void ReportLeftOut() ABSL_LOCKS_EXCLUDED(mu_);
  // Writes the line of a request that failed by the server's fault, at level
  // kError: no line is left out.
  void AccessFailed(Fields fields) {
    Write(LogLevel::kError, LogModule::kRequests, "request failed", fields);
  }

  // From now on these levels are written.
  void SetLevels(const LogLevels& levels);

  // Waits until all lines are written; false if `limit` passes before. For the
  // end of the process and for tests.
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
  absl::flat_hash_map<std::string, LineSampler> refused_
      ABSL_GUARDED_BY(mu_);  // By reason.
  LogWriter writer_;
};

}  // namespace sfmamba::observability

#endif  // SFMAMBA_SERVER_OBSERVABILITY_LOG_H_
