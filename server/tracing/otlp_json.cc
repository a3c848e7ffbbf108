#include "server/tracing/otlp_json.h"

#include <cstdint>
#include <variant>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace sfmamba::tracing {
namespace {

using nlohmann::json;

// Numbers of opentelemetry/proto/trace/v1/trace.proto.
constexpr int kInternalKind = 1, kServerKind = 2;
constexpr int kErrorCode = 2;
// Bits of Span.flags: it is known whether the parent is another process's, and
// it is.
constexpr int kHasIsRemote = 0x100, kIsRemote = 0x200;
constexpr int kSampled = 1;

json Value(const std::variant<int64_t, std::string>& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    // protobuf's JSON has 64-bit integers as strings.
    return {{"intValue", absl::StrCat(*number)}};
  }
  return {{"stringValue", std::get<std::string>(value)}};
}

json KeyValue(const char* key,
              const std::variant<int64_t, std::string>& value) {
  return {{"key", key}, {"value", Value(value)}};
}

std::string Nanos(absl::Time time) {
  return absl::StrCat(absl::ToUnixNanos(time));
}

json ToJson(const SpanContext& context) {
  return {{"traceId", Hex(context.trace)},
          {"spanId", observability::Hex(context.span)}};
}

json ToJson(const Span& span) {
  json result = ToJson(span.context);
  if (span.parent != 0) {
    result["parentSpanId"] = observability::Hex(span.parent);
  }
  if (!span.tracestate.empty()) result["traceState"] = span.tracestate;
  result["name"] = span.name;
  result["kind"] = span.is_server ? kServerKind : kInternalKind;
  result["flags"] = kSampled | kHasIsRemote |
                    (span.is_server && span.parent != 0 ? kIsRemote : 0);
  result["startTimeUnixNano"] = Nanos(span.start);
  result["endTimeUnixNano"] = Nanos(span.end);
  json& attributes = result["attributes"] = json::array();
  for (const Attribute& attribute : span.attributes) {
    attributes.push_back(KeyValue(attribute.key, attribute.value));
  }
  if (!span.links.empty()) {
    json& links = result["links"] = json::array();
    for (const SpanContext& link : span.links) links.push_back(ToJson(link));
  }
  if (!span.error.empty()) {
    result["status"] = {{"code", kErrorCode}, {"message", span.error}};
  }
  return result;
}

}  // namespace

std::string OtlpJson(const Resource& resource, const std::vector<Span>& spans) {
  json listed = json::array();
  for (const Span& span : spans) listed.push_back(ToJson(span));
  const json scope = {{"scope", {{"name", "sfmamba"}}},
                      {"spans", std::move(listed)}};
  const json request = {
      {"resourceSpans",
       json::array(
           {{{"resource",
              {{"attributes",
                json::array({KeyValue("service.name", resource.service),
                             KeyValue("service.version", resource.version),
                             KeyValue("host.name", resource.host)})}}},
             {"scopeSpans", json::array({scope})}}})}};
  // Texts of clients may not be UTF-8, for which dump() would throw otherwise.
  return request.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sfmamba::tracing
