#include "server/observability/log.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/testing/patience.h"

namespace sfmamba::observability {
namespace {

// Reads what a logger wrote to a temporary file.
class LogTest : public testing::Test {
 protected:
  LogTest() : file_(std::tmpfile()) {}
  ~LogTest() override { std::fclose(file_); }

  std::string Written(Logger& log) {
    EXPECT_TRUE(log.Flush(absl::Seconds(30)));
    std::fseek(file_, 0, SEEK_END);
    std::string text(std::ftell(file_), '\0');
    std::rewind(file_);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_), text.size());
    return text;
  }

  // Returns the only line written, as JSON.
  google::protobuf::Struct WrittenJson(Logger& log) {
    const std::string text = Written(log);
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    google::protobuf::Struct json;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &json).ok())
        << text;
    return json;
  }

  std::FILE* const file_;
};

TEST_F(LogTest, ALineIsOneJsonObject) {
  Logger log(file_, LogLevel::kInfo, LogFormat::kJson);
  log.Info(LogModule::kModels, "model is ready",
           {{"model", "a"}, {"seconds", 1.5}, {"n", 3}});
  google::protobuf::Struct json = WrittenJson(log);
  auto& fields = *json.mutable_fields();
  EXPECT_EQ(fields["level"].string_value(), "info");
  EXPECT_EQ(fields["module"].string_value(), "models");
  EXPECT_EQ(fields["msg"].string_value(), "model is ready");
  EXPECT_EQ(fields["model"].string_value(), "a");
  EXPECT_EQ(fields["seconds"].number_value(), 1.5);
  EXPECT_EQ(fields["n"].number_value(), 3);
  absl::Time ts;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, fields["ts"].string_value(),
                              &ts, &error))
      << error;
}

TEST_F(LogTest, HostileTextStaysOneValidLine) {
  Logger log(file_, LogLevel::kInfo, LogFormat::kJson);
  const std::string hostile = std::string("a\"b\\c\n\r\t\x01\x7f", 10) +
                              "\xff\xc0\x80\xed\xa0\x80 \xc3\xa9 \xe2\x82\xac";
  log.Info(LogModule::kServer, "x", {{"request_id", hostile}});
  google::protobuf::Struct json = WrittenJson(log);
  const std::string value =
      (*json.mutable_fields())["request_id"].string_value();
  EXPECT_EQ(value.substr(0, 10), hostile.substr(0, 10));
  EXPECT_EQ(value.substr(value.size() - 7), " \xc3\xa9 \xe2\x82\xac");
}

TEST_F(LogTest, LevelsBelowAreLeftOut) {
  Logger log(file_, LogLevel::kWarning, LogFormat::kText);
  log.Debug(LogModule::kServer, "debug");
  log.Info(LogModule::kModels, "info");
  log.Access({{"code", "OK"}});
  EXPECT_EQ(Written(log), "");
  log.Error(LogModule::kModels, "broken", {{"code", "X"}});
  EXPECT_NE(Written(log).find("error   models   broken code=X\n"),
            std::string::npos);
}

TEST_F(LogTest, EachModuleHasItsLevel) {
  absl::StatusOr<LogLevels> levels =
      ParseLogLevels("error,models=debug,requests=info");
  ASSERT_TRUE(levels.ok()) << levels.status();
  Logger log(file_, *levels, LogFormat::kText);
  log.Warning(LogModule::kServer, "server 1");
  log.Error(LogModule::kServer, "server 2");
  log.Debug(LogModule::kModels, "models 3");
  log.Debug(LogModule::kRequests, "requests 4");
  log.Access({{"code", "OK"}});
  const std::string text = Written(log);
  EXPECT_EQ(text.find("server 1"), std::string::npos);
  EXPECT_NE(text.find("server 2"), std::string::npos);
  EXPECT_NE(text.find("models 3"), std::string::npos);
  EXPECT_EQ(text.find("requests 4"), std::string::npos);
  EXPECT_NE(text.find("request code=OK"), std::string::npos);
}

TEST_F(LogTest, LevelsCanBeChanged) {
  Logger log(file_, LogLevel::kError, LogFormat::kText);
  log.Info(LogModule::kModels, "first");
  log.SetLevels(*ParseLogLevels("error,models=info"));
  log.Info(LogModule::kModels, "second");
  log.Info(LogModule::kServer, "third");
  const std::string text = Written(log);
  EXPECT_EQ(text.find("first"), std::string::npos);
  EXPECT_NE(text.find("second"), std::string::npos);
  EXPECT_EQ(text.find("third"), std::string::npos);
}

TEST(LineSamplerTest, WholeUpToTheBurstThenASample) {
  LineSampler sampler(100, 100);
  const absl::Time start = absl::UnixEpoch();
  int admitted = 0;
  for (int i = 0; i < 1000; ++i) {
    admitted += sampler.Admit(start + absl::Microseconds(i));
  }
  EXPECT_EQ(admitted, 109);
  EXPECT_EQ(sampler.TakeSkipped(), 891);
  EXPECT_EQ(sampler.TakeSkipped(), 0);
  EXPECT_TRUE(sampler.Admit(start + absl::Seconds(1)));
}

TEST(LineSamplerTest, WithoutASampleNoneAfterTheBurst) {
  LineSampler sampler(10, 0);
  const absl::Time start = absl::UnixEpoch();
  int admitted = 0;
  for (int i = 0; i < 1000; ++i) admitted += sampler.Admit(start);
  EXPECT_EQ(admitted, 10);
  EXPECT_EQ(sampler.TakeSkipped(), 990);
  EXPECT_TRUE(sampler.Admit(start + absl::Seconds(1)));
}

TEST(LineSamplerTest, AClockThatIsSetBackSilencesNothing) {
  LineSampler sampler(1, 0);
  const absl::Time start = absl::UnixEpoch() + absl::Hours(24);
  EXPECT_TRUE(sampler.Admit(start));
  EXPECT_FALSE(sampler.Admit(start));
  EXPECT_TRUE(sampler.Admit(start - absl::Hours(3)));
  EXPECT_FALSE(sampler.Admit(start - absl::Hours(3)));
}

// Returns how many times `text` contains `line`.
int CountOf(const std::string& line, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(line); at != text.npos;
       at = text.find(line, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(LogTest, AFloodOfRefusalsLeavesFewLinesAndItsNumber) {
  Logger log(file_, LogLevel::kInfo, LogFormat::kText);
  constexpr int kFlood = 11'000;
  for (int i = 0; i < kFlood; ++i) {
    log.AccessRefused("QUEUE_FULL", {{"code", "FULL"}});
  }
  log.AccessRefused("INVALID_FIELD", {{"code", "BAD"}});
  log.ReportLeftOut();
  log.ReportLeftOut();
  const std::string text = Written(log);
  const int full = CountOf("request code=FULL\n", text);
  EXPECT_GE(full, 10);
  EXPECT_LE(full, 300);  // A busy machine takes seconds for this loop.
  EXPECT_EQ(CountOf("request code=BAD\n", text), 1);
  EXPECT_EQ(CountOf("requests were refused", text), 1);
  EXPECT_EQ(CountOf(absl::StrCat("requests were refused reason=QUEUE_FULL "
                                 "lines_left_out=",
                                 kFlood - full, "\n"),
                    text),
            1)
      << text;
}

TEST_F(LogTest, ServerFaultsAllLeaveALine) {
  Logger log(file_, LogLevel::kError, LogFormat::kText);
  for (int i = 0; i < 1000; ++i) log.AccessFailed({{"code", "INTERNAL"}});
  log.AccessRefused("QUEUE_FULL", {{"code", "FULL"}});
  log.ReportLeftOut();
  const std::string text = Written(log);
  EXPECT_EQ(CountOf("error   requests request failed code=INTERNAL\n", text),
            1000);
  EXPECT_EQ(text.find("FULL"), text.npos);
}

TEST(UnreadLogTest, HoldsUpNoRequest) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::FILE* const out = fdopen(ends[1], "w");
  {
    const TimeLimit limit("requests that log");
    Logger log(out, LogLevel::kInfo, LogFormat::kJson);
    const std::string error(1000, 'x');
    for (int i = 0; i < 10'000; ++i) {
      log.Access({{"code", "OK"}});
      log.AccessRefused("QUEUE_FULL", {{"error", error}});
      log.AccessFailed({{"error", error}});
    }
    log.ReportLeftOut();
    EXPECT_GT(log.TakeDropped(), 0);
  }
  std::fclose(out);
  close(ends[0]);
}

TEST(LogNamesTest, UnknownNamesAreRefused) {
  EXPECT_EQ(ParseLogLevels("warning")->of, LogLevels(LogLevel::kWarning).of);
  EXPECT_EQ(ParseLogLevels("")->of, LogLevels(LogLevel::kInfo).of);
  for (const char* text : {"loud", "info,models=loud", "info,modells=debug",
                           "info,debug", "models=debug,info", "info,,"}) {
    EXPECT_FALSE(ParseLogLevels(text).ok()) << text;
  }
  EXPECT_EQ(*ParseLogFormat("text"), LogFormat::kText);
  EXPECT_FALSE(ParseLogFormat("xml").ok());
}

}  // namespace
}  // namespace sfmamba::observability
