#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/tracing/span_exporter.h"

namespace sfmamba::tracing {
namespace {

using nlohmann::json;

constexpr TraceId kTrace = {0x4bf92f3577b34da6, 0xa3ce929d0e0e4736};

Span MakeSpan() {
  Span span;
  span.name = "decode";
  span.context = {kTrace, 0xb7};
  span.start = absl::FromUnixNanos(1'700'000'000'123'456'789);
  span.end = span.start + absl::Nanoseconds(5);
  return span;
}

TEST(OtlpJsonTest, HasTheFieldsOfOtlp) {
  Span span = MakeSpan();
  span.parent = 0xa;
  span.attributes = {{"sfmamba.batch_size", 3}, {"sfmamba.model", "tiny"}};
  const std::string text = OtlpJson({"sfmamba", "1.2", "pod-1"}, {span});
  EXPECT_EQ(json::parse(text), json::parse(R"({
    "resourceSpans": [{
      "resource": {"attributes": [
        {"key": "service.name", "value": {"stringValue": "sfmamba"}},
        {"key": "service.version", "value": {"stringValue": "1.2"}},
        {"key": "host.name", "value": {"stringValue": "pod-1"}}]},
      "scopeSpans": [{
        "scope": {"name": "sfmamba"},
        "spans": [{
          "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
          "spanId": "00000000000000b7",
          "parentSpanId": "000000000000000a",
          "name": "decode",
          "kind": 1,
          "flags": 257,
          "startTimeUnixNano": "1700000000123456789",
          "endTimeUnixNano": "1700000000123456794",
          "attributes": [
            {"key": "sfmamba.batch_size", "value": {"intValue": "3"}},
            {"key": "sfmamba.model", "value": {"stringValue": "tiny"}}]}]}]}]
  })"))
      << text;
  EXPECT_EQ(text.find('\n'), text.npos);
}

TEST(OtlpJsonTest, ASpanOfAnsweringHasItsCallersStateAndItsError) {
  Span span = MakeSpan();
  span.is_server = true;
  span.tracestate = "rojo=1";
  span.error = "the device has failed";
  span.links = {{kTrace, 1}, {{1, 2}, 3}};
  const json sent = json::parse(OtlpJson({}, {span, MakeSpan()}));
  const json& spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"];
  ASSERT_EQ(spans.size(), 2);
  EXPECT_EQ(spans[0]["kind"], 2);
  EXPECT_EQ(spans[0]["flags"], 257);  // No parent is elsewhere.
  EXPECT_EQ(spans[0]["traceState"], "rojo=1");
  EXPECT_EQ(spans[0]["status"],
            json({{"code", 2}, {"message", "the device has failed"}}));
  EXPECT_EQ(spans[0]["links"][1],
            json({{"traceId", "00000000000000010000000000000002"},
                  {"spanId", "0000000000000003"}}));
  EXPECT_FALSE(spans[1].contains("parentSpanId"));
  EXPECT_FALSE(spans[1].contains("traceState"));
  EXPECT_FALSE(spans[1].contains("status"));
  EXPECT_FALSE(spans[1].contains("links"));
  span.parent = 1;
  const json below = json::parse(OtlpJson({}, {span}));
  EXPECT_EQ(below["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["flags"],
            0x301);
}

TEST(OtlpJsonTest, TextIsUtf8WithoutEscapes) {
  Span span = MakeSpan();
  span.attributes = {{"sfmamba.request_id", "größe"}};
  EXPECT_THAT(OtlpJson({}, {span}), testing::HasSubstr("größe"));
}

TEST(OtlpJsonTest, HostileTextIsStillJson) {
  Span span = MakeSpan();
  span.attributes = {
      {"sfmamba.request_id", std::string("a\"\\\n\0\xff\xc3", 7)}};
  const std::string text = OtlpJson({}, {span});
  EXPECT_EQ(text.find('\n'), text.npos);
  EXPECT_FALSE(json::parse(text, nullptr, false).is_discarded()) << text;
}

}  // namespace
}  // namespace sfmamba::tracing
