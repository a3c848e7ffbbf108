// Tests the verbs of the command line with a server in this process: the output
// and the exit code.
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/commands/bench/bench_command.h"
#include "client/commands/classify_command.h"
#include "client/commands/detect_command.h"
#include "client/commands/health_command.h"
#include "client/commands/models_command.h"
#include "client/commands/segment_command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/command_fixture.h"
#include "tests/client/commands_testing.h"

namespace sfmamba::client {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class CommandsTest : public CommandFixture {};

class UsageTest : public testing::TestWithParam<Command> {};

TEST_P(UsageTest, UnknownFlagsAreRefused) {
  const Outcome outcome = Invoke(GetParam(), {"--no_such_flag"});
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_THAT(outcome.err, HasSubstr("unknown flag '--no_such_flag'"));
  EXPECT_EQ(outcome.out, "");
}

TEST_P(UsageTest, HelpIsNoError) {
  const Outcome outcome = Invoke(GetParam(), {"--help"});
  EXPECT_EQ(outcome.exit_code, kExitOk);
  EXPECT_THAT(outcome.out, HasSubstr("usage: sfmamba "));
  EXPECT_THAT(outcome.out, HasSubstr("--server HOST:PORT"));
}

INSTANTIATE_TEST_SUITE_P(Verbs, UsageTest,
                         testing::Values(RunClassify, RunDetect, RunSegment,
                                         RunModels, RunHealth, RunBench));

TEST_F(CommandsTest, ClassifyPrintsATableAndTimings) {
  const std::string a = WriteFile("a.jpg", "a");
  const Outcome outcome = Invoke(RunClassify, {ServerFlag(), a, "--timing"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  EXPECT_THAT(
      outcome.out,
      MatchesRegex("file .*rank  label   score\n.*a.jpg +1  cup +0.7500\n"
                   "\ntime in ms.*decode.*total  batch  device\n"
                   ".*a.jpg .* 2.50 .* 1000.00 +4  cpu\n"));
}

TEST_F(CommandsTest, ClassifyKeepsTheOrderOfManyFiles) {
  std::vector<std::string> arguments = {ServerFlag()};
  std::string pattern = "file.*\n";
  for (int i = 0; i < 30; ++i) {
    arguments.push_back(WriteFile(absl::StrCat("file", i, ".jpg"), "x"));
    absl::StrAppend(&pattern, ".*file", i, ".jpg .*\n");
  }
  const Outcome outcome = Invoke(RunClassify, arguments);
  EXPECT_EQ(outcome.exit_code, kExitOk);
  EXPECT_THAT(outcome.out, MatchesRegex(pattern));
}

TEST_F(CommandsTest, ClassifyWritesJson) {
  const std::string a = WriteFile("a.jpg", "a");
  const std::string bad = WriteFile("bad.jpg", "bad");
  const Outcome outcome = Invoke(RunClassify, {ServerFlag(), a, bad, "--json"});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_EQ(
      outcome.out,
      absl::StrCat(R"([{"file": ")", a,
                   R"(", "model": "models/m/versions/1", "categories": )"
                   R"([{"class_id": 0, "label": "cup", "score": 0.75}]}, )"
                   R"({"file": ")",
                   bad,
                   R"(", "error": {"code": "INVALID_ARGUMENT", )"
                   R"("reason": "IMAGE_FORMAT_UNSUPPORTED", )"
                   R"("message": "not a picture", )"
                   R"("fields": ["images[0].encoded"]}}])",
                   "\n"));
}

TEST_F(CommandsTest, ABadPictureDoesNotHideTheGoodOnes) {
  const Outcome outcome = Invoke(
      RunClassify,
      {ServerFlag(), WriteFile("bad.jpg", "bad"), WriteFile("a.jpg", "a")});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_THAT(outcome.out, MatchesRegex("file .*\n.*/a.jpg +1  cup +0.7500\n"));
  EXPECT_EQ(outcome.err, absl::StrCat("sfmamba: ", testing::TempDir(),
                                      "/bad.jpg: INVALID_ARGUMENT "
                                      "(IMAGE_FORMAT_UNSUPPORTED): "
                                      "images[0].encoded: not a picture\n"));
}

TEST_F(CommandsTest, EachFileThatFailsHasALineAndNoTable) {
  const std::string bad = WriteFile("bad.jpg", "bad");
  for (const bool timing : {false, true}) {
    const Outcome outcome =
        Invoke(RunClassify, {ServerFlag(), bad, "/no/such/file.jpg", bad,
                             timing ? "--timing" : "--timing=false"});
    EXPECT_EQ(outcome.exit_code, kExitUsage);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err,
                MatchesRegex("sfmamba: .*/bad.jpg: [^\n]*\n"
                             "sfmamba: cannot read '/no/such/file.jpg': "
                             "No such file or directory\n"
                             "sfmamba: .*/bad.jpg: [^\n]*\n"));
  }
}

TEST_F(CommandsTest, JsonHasTheErrorsTooAndTheyAreStillLines) {
  const Outcome outcome = Invoke(
      RunClassify, {ServerFlag(), WriteFile("bad.jpg", "bad"), "--json"});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_THAT(outcome.out, HasSubstr(R"("message": "not a picture")"));
  EXPECT_THAT(outcome.err, MatchesRegex("sfmamba: .*/bad.jpg: [^\n]*\n"));
}

// A message of the server must not add lines or move the cursor.
TEST(WriteErrorLineTest, IsOneLine) {
  std::ostringstream out, err;
  WriteErrorLine("a\nb\x1B[2J\tcafé", Console{out, err});
  EXPECT_EQ(err.str(), "sfmamba: a b [2J café\n");
  err.str("");
  EXPECT_EQ(UsageError("a\nb\x1B[2J", Console{out, err}), kExitUsage);
  EXPECT_EQ(err.str(),
            "sfmamba: a b [2J\n'sfmamba help VERB' tells how a verb is used\n");
  EXPECT_EQ(out.str(), "");
}

TEST(FinishOutputTest, TellsOfAnAnswerThatIsLost) {
  std::ostringstream whole, err;
  EXPECT_EQ(FinishOutput(kExitOk, Console{whole, err}), kExitOk);
  EXPECT_EQ(FinishOutput(kExitRpcError, Console{whole, err}), kExitRpcError);
  EXPECT_EQ(err.str(), "");
  std::ofstream full("/dev/full");
  full << "an answer";
  EXPECT_EQ(FinishOutput(kExitOk, Console{full, err}), kExitUsage);
  EXPECT_EQ(err.str(), "sfmamba: cannot write all of the output\n");
}

TEST_F(CommandsTest, AFileThatCannotBeReadIsAUsageError) {
  const std::pair<std::string, const char*> kProblems[] = {
      {"/no/such/file.jpg", "No such file or directory"},
      {testing::TempDir(), "Is a directory"}};
  for (const auto& [path, problem] : kProblems) {
    const Outcome outcome = Invoke(RunClassify, {ServerFlag(), path});
    EXPECT_EQ(outcome.exit_code, kExitUsage);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, absl::StrCat("sfmamba: cannot read '", path,
                                        "': ", problem, "\n"));
  }
  EXPECT_EQ(server_.call_count(), 0);
}

TEST_F(CommandsTest, AnEmptyFileIsTheServersToJudge) {
  const Outcome outcome =
      Invoke(RunClassify, {ServerFlag(), WriteFile("empty.jpg", "")});
  EXPECT_EQ(server_.call_count(), 1);
  EXPECT_EQ(outcome.exit_code, kExitOk);
}

TEST_F(CommandsTest, ClassifyCanBeTraced) {
  const std::string a = WriteFile("a.jpg", "a");
  const Outcome traced = Invoke(RunClassify, {ServerFlag(), a, "--traced"});
  EXPECT_EQ(traced.exit_code, kExitOk) << traced.err;
  const std::string traceparent = server_.traceparent();
  EXPECT_THAT(traceparent, MatchesRegex("00-[0-9a-f]{32}-[0-9a-f]{16}-01"));
  EXPECT_THAT(traced.err,
              HasSubstr(absl::StrCat("trace ", traceparent.substr(3, 32))));
  const Outcome other = Invoke(RunClassify, {ServerFlag(), a});
  EXPECT_EQ(other.err, "");
  EXPECT_EQ(server_.traceparent(), "");
}

TEST_F(CommandsTest, ClassifyNeedsAFile) {
  EXPECT_EQ(Invoke(RunClassify, {ServerFlag()}).exit_code, kExitUsage);
}

TEST_F(CommandsTest, ModelsListsAndTellsOfOne) {
  const Outcome all = Invoke(RunModels, {ServerFlag()});
  EXPECT_EQ(all.exit_code, kExitOk);
  EXPECT_THAT(all.out, MatchesRegex("name .*\nmodels/m/versions/1 +"
                                    "CLASSIFICATION  READY +2  8x6 .*\n"));
  const Outcome one = Invoke(RunModels, {ServerFlag(), "models/m/versions/1"});
  EXPECT_EQ(one.exit_code, kExitOk);
  EXPECT_THAT(one.out, HasSubstr("    1  chair\n"));
  const Outcome json = Invoke(RunModels, {ServerFlag(), "--json"});
  EXPECT_THAT(json.out, HasSubstr(R"("class_count":2)"));
}

TEST_F(CommandsTest, AnUnknownModelIsAnRpcErrorWithItsReason) {
  const Outcome outcome = Invoke(RunModels, {ServerFlag(), "x", "--json"});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_THAT(outcome.err, HasSubstr("NOT_FOUND (MODEL_NOT_FOUND)"));
  EXPECT_THAT(outcome.out, HasSubstr(R"({"error": {"code": "NOT_FOUND")"));
}

TEST_F(CommandsTest, HealthIsTheExitCode) {
  const std::string service = "--service=sfmamba.v1.VisionService";
  const Outcome healthy = Invoke(RunHealth, {ServerFlag(), service});
  EXPECT_EQ(healthy.exit_code, kExitOk);
  EXPECT_EQ(healthy.out, "SERVING\n");
  server_.SetHealthy(false);
  const Outcome unhealthy =
      Invoke(RunHealth, {ServerFlag(), service, "--json"});
  EXPECT_EQ(unhealthy.exit_code, kExitRpcError);
  EXPECT_EQ(unhealthy.out,
            "{\"service\": \"sfmamba.v1.VisionService\", "
            "\"status\": \"NOT_SERVING\"}\n");
  EXPECT_EQ(Invoke(RunHealth, {"--server=127.0.0.1:1"}).exit_code,
            kExitRpcError);
}

}  // namespace
}  // namespace sfmamba::client
