#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/observability/memory_limit.h"
#include "server/observability/metric_families.h"

namespace sfmamba::observability {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::string ReadAll(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

MetricFamily Single(const char* name, const char* help, MetricType type,
                    double value) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  family.metric.resize(1);
  family.metric[0].counter.value = value;
  family.metric[0].gauge.value = value;
  return family;
}

// Returns the Unix time in seconds when the machine started, or 0 if it is
// unknown.
double BootTime() {
  for (absl::string_view line : absl::StrSplit(ReadAll("/proc/stat"), '\n')) {
    double seconds = 0;
    if (absl::ConsumePrefix(&line, "btime ") &&
        absl::SimpleAtod(line, &seconds)) {
      return seconds;
    }
  }
  return 0;
}

int CountOpenFiles() {
  std::error_code error;
  int count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end;
       !error && it != end; it.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

std::vector<MetricFamily> CollectProcess() {
  std::vector<MetricFamily> families;
  // The second field of the file, the command, may contain spaces and brackets.
  // The first two fields are therefore skipped, and fields[0] is field 3 of
  // proc(5). For example, utime is field 14 of proc(5), which is fields[11].
  const std::string stat = ReadAll("/proc/self/stat");
  const size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos || bracket + 2 >= stat.size()) return {};
  const std::vector<std::string> fields =
      absl::StrSplit(stat.substr(bracket + 2), ' ');
  double user = 0, system = 0, start = 0, pages = 0;
  if (fields.size() > 21 && absl::SimpleAtod(fields[11], &user) &&
      absl::SimpleAtod(fields[12], &system) &&
      absl::SimpleAtod(fields[19], &start) &&
      absl::SimpleAtod(fields[21], &pages)) {
    const double ticks = sysconf(_SC_CLK_TCK);
    families.push_back(Single("process_cpu_seconds_total",
                              "User and system CPU time.", MetricType::Counter,
                              (user + system) / ticks));
    families.push_back(Single("process_resident_memory_bytes",
                              "Resident memory.", MetricType::Gauge,
                              pages * sysconf(_SC_PAGESIZE)));
    families.push_back(Single("process_start_time_seconds",
                              "Start time, in seconds since the Unix epoch.",
                              MetricType::Gauge, BootTime() + start / ticks));
  }
  if (const int64_t limit = MemoryLimit(); limit > 0) {
    families.push_back(Single("sfmamba_memory_limit_bytes",
                              "Memory that the process may use.",
                              MetricType::Gauge, limit));
  }
  families.push_back(Single("process_open_fds", "Open file descriptors.",
                            MetricType::Gauge, CountOpenFiles()));
  return families;
}

}  // namespace sfmamba::observability
