#include "server/make_tracer.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "server/tracing/collector.h"
#include "server/tracing/endpoint.h"
#include "server/tracing/otlp_json.h"
#include "server/tracing/span_exporter.h"
#include "server/tracing/span_file.h"

namespace sfmamba::server {
namespace {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::unique_ptr<tracing::SpanExporter> MakeExporter(
    const char* name, const std::string& version, observability::Logger* log,
    std::unique_ptr<tracing::SpanSink> sink) {
  tracing::SpanExporter::Options options;
  options.name = name;
  options.resource = {"sfmamba", version, HostName()};
  options.changed = [log](const absl::Status& status) {
    if (status.ok()) {
      log->Info(observability::LogModule::kServer, "spans are taken again");
    } else {
      log->Warning(observability::LogModule::kServer, "spans are dropped",
                   {{"error", status.message()}});
    }
  };
  return std::make_unique<tracing::SpanExporter>(std::move(options),
                                                 std::move(sink));
}

}  // namespace

std::unique_ptr<tracing::Tracer> MakeTracer(const v1::ServerConfig& config,
                                            const std::string& version,
                                            observability::Logger* log) {
  std::vector<std::unique_ptr<tracing::SpanExporter>> exporters;
  if (!config.trace_file().empty()) {
    exporters.push_back(
        MakeExporter("file", version, log,
                     std::make_unique<tracing::SpanFile>(
                         config.trace_file(), config.trace_file_bytes())));
  }
  if (!config.trace_endpoint().empty()) {
    tracing::Collector::Options options;
    options.url = *tracing::TracesUrl(config.trace_endpoint());
    options.ca_file = config.trace_ca_file();
    exporters.push_back(
        MakeExporter("collector", version, log,
                     std::make_unique<tracing::Collector>(options)));
  }
  return std::make_unique<tracing::Tracer>(config.trace_ratio(),
                                           std::move(exporters));
}

}  // namespace sfmamba::server
