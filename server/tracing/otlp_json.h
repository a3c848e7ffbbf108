#ifndef SFMAMBA_SERVER_TRACING_OTLP_JSON_H_
#define SFMAMBA_SERVER_TRACING_OTLP_JSON_H_

#include <string>
#include <vector>

#include "server/tracing/span.h"

namespace sfmamba::tracing {

// Who made the spans.
struct Resource {
  std::string service = "sfmamba";
  std::string version;
  std::string host;
};

// An OTLP ExportTraceServiceRequest in JSON, on one line: ids in hexadecimal,
// numbers of 64 bits as texts. Bytes that are not UTF-8 are replaced.
std::string OtlpJson(const Resource& resource, const std::vector<Span>& spans);

}  // namespace sfmamba::tracing

#endif  // SFMAMBA_SERVER_TRACING_OTLP_JSON_H_
