#include <string>
#include <utility>

#include "base/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/settings/textproto.h"
#include "sfmamba/v1/config.pb.h"

namespace sfmamba::server {
namespace {

using testing::HasSubstr;

absl::StatusOr<v1::ServerConfig> Parse(const std::string& text) {
  v1::ServerConfig config;
  const absl::Status status = ParseTextProto("file", text, &config);
  if (!status.ok()) return status;
  return config;
}

TEST(TextValuesTest, DurationsAndSizesAreWrittenAsInFlagsOrAsProtobufDoes) {
  for (const char* text :
       {"drain_delay: \"5s\" max_message_bytes: \"32MiB\"",
        "drain_delay: 5s, max_message_bytes: 32MiB;",
        "drain_delay: '5000ms'\nmax_message_bytes: 33554432",
        "# 5s\nmax_message_bytes: 0x2000000 drain_delay { seconds: 5 }",
        "drain_delay: < seconds: 5 > max_message_bytes: '32768KiB' # end"}) {
    const auto config = Parse(text);
    ASSERT_TRUE(config.ok()) << text << ": " << config.status();
    EXPECT_EQ(base::FromProto(config->drain_delay()), absl::Seconds(5)) << text;
    EXPECT_EQ(config->max_message_bytes(), 32 << 20) << text;
  }
}

TEST(TextValuesTest, SoAreThoseInsideOfMessages) {
  v1::ModelConfig config;
  const absl::Status status = ParseTextProto(
      "file",
      "detector { box_stds { values: [0.1, 0.1] } box_stds: [{values: 1}] }\n"
      "batching { max_queue_delay: 3ms max_queue_bytes: '1GiB' }\n"
      "weights { size_bytes: 7 sha256: \"12s 5MiB\" }",
      &config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(base::FromProto(config.batching().max_queue_delay()),
            absl::Milliseconds(3));
  EXPECT_EQ(config.batching().max_queue_bytes(), 1 << 30);
  EXPECT_EQ(config.detector().box_stds_size(), 2);
  EXPECT_EQ(config.weights().sha256(), "12s 5MiB");
}

TEST(TextValuesTest, AnErrorShowsTheFormAndWhereItIs) {
  const std::pair<const char*, const char*> cases[] = {
      {"port: 1\n  drain_delay: 5",
       "line 2, column 16: drain_delay: got \"5\", "
       "expected a duration such as 1.5s"},
      {"drain_delay: \"5 s\"", "line 1, column 14: drain_delay: got \"5 s\""},
      {"drain_delay: soon", "drain_delay: got \"soon\", expected a duration"},
      {"max_message_bytes: \"32MB\"",
       "line 1, column 20: max_message_bytes: got \"32MB\", expected a number "
       "of bytes such as 64MiB"},
      {"max_message_bytes: 32MB", "max_message_bytes: got \"32MB\""},
      // Some values are replaced before parsing. Positions in errors must still
      // refer to the original text.
      {"drain_delay: 5s prt: 1", "line 1, column 20"},
      {"drain_delay: 5s port: x", "line 1, column 23"}};
  for (const auto& [text, error] : cases) {
    EXPECT_THAT(Parse(text).status().message(), HasSubstr(error)) << text;
  }
}

TEST(TextValuesTest, WhatIsNoTextFormatIsStillAnError) {
  for (const char* text :
       {"drain_delay", "drain_delay:", "drain_delay: \"5s", "drain_delay: [",
        "port {", "}", "port: [1", "drain_delay: 5s }", "model: \"a\\",
        "max_message_bytes: 5 : 6", "drain_delay: {{{{"}) {
    EXPECT_FALSE(Parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace sfmamba::server
