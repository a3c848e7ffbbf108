#include "client/commands/admin/server_info.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/proto_duration.h"
#include "client/commands/command.h"
#include "client/commands/output/model_table.h"
#include "client/commands/output/text_table.h"

namespace sfmamba::client {
namespace {

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", bytes / 1024.0 / 1024.0);
}

std::string Memory(const v1::MemoryUse& memory) {
  std::string text =
      absl::StrCat("memory: ", Mebibytes(memory.resident_bytes()), " resident",
                   memory.limit_bytes() == 0
                       ? ""
                       : absl::StrCat(" of ", Mebibytes(memory.limit_bytes())),
                   ", ", Mebibytes(memory.requests_bytes()), " of ",
                   Mebibytes(memory.requests_limit_bytes()), " for requests\n");
  return text;
}

std::string VersionTable(const v1::ServerInfo& info) {
  TextTable table({"name", "labels", "state", "device", "precision",
                   ">predicted wait", ">waiting"});
  for (const v1::ServedModel& model : info.models()) {
    for (const v1::ServedVersion& version : model.versions()) {
      table.AddRow(
          {version.model().name(),
           absl::StrJoin(version.model().version_labels(), " "),
           StateText(version.model()), version.device(),
           version.model().precision(),
           version.has_predicted_wait()
               ? FormatMilliseconds(base::FromProto(version.predicted_wait()))
               : "",
           absl::StrCat(version.waiting_images())});
    }
  }
  return table.ToString();
}

}  // namespace

std::string DescribeServer(const v1::ServerInfo& info) {
  const absl::Time start = absl::FromUnixSeconds(info.start_time().seconds());
  return absl::StrCat(
      "sfmamba ", info.version(),
      info.revision().empty() ? "" : absl::StrCat(" (", info.revision(), ")"),
      ", since ",
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", start, absl::UTCTimeZone()),
      "\nmodel control: ", info.model_control(), "\n", Memory(info.memory()),
      DescribeSettings(info.settings()), "\n", VersionTable(info));
}

std::string DescribeSettings(const v1::RuntimeSettings& settings) {
  std::string text =
      absl::StrFormat("log_level: %s\ntrace_ratio: %g\n", settings.log_level(),
                      settings.trace_ratio());
  for (const v1::QueueLimits& queue : settings.queues()) {
    absl::StrAppendFormat(&text, "queue of %s: at most %d images, %s\n",
                          queue.model(), queue.max_queue_items(),
                          Mebibytes(queue.max_queue_bytes()));
  }
  return text;
}

}  // namespace sfmamba::client
