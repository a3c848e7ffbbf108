// Tests `sfmamba stream` with a server in this process that has a fake model.
#include "client/commands/stream_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/commands_testing.h"
#include "tests/server/picture.h"
#include "tests/server/vision_service_fixture.h"
#include "tests/testing/patience.h"

namespace sfmamba::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class StreamCommandTest : public server::VisionServiceTest {
 protected:
  StreamCommandTest() : folder_(server::NewFolder("pictures")) {}

  std::string Add(const std::string& name, const std::string& bytes) {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string AddPicture(const std::string& name) {
    return Add(name, server::EncodePng(server::Gradient(20, 10)));
  }

  Outcome Stream(std::vector<std::string> arguments) {
    arguments.push_back(
        absl::StrCat("--server=127.0.0.1:", server_->server().port()));
    return Invoke(RunStream, arguments);
  }

  const std::string folder_;
};

std::vector<std::string> LinesOf(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

auto Answered(const std::string& name) {
  return AllOf(HasSubstr(name + "\", \"classify\": {"),
               HasSubstr("models/fake/versions/3"));
}

TEST_F(StreamCommandTest, AnswersEachPictureOfAFolder) {
  Start();
  AddPicture("a.png");
  AddPicture("b.PNG");
  Add("c.jpg", "no picture");
  Add("d.txt", "not sent");
  const Outcome outcome = Stream({folder_});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_THAT(
      LinesOf(outcome.out),
      UnorderedElementsAre(
          Answered("a.png"), Answered("b.PNG"),
          AllOf(HasSubstr("c.jpg"), HasSubstr("IMAGE_FORMAT_UNSUPPORTED"))));
  EXPECT_THAT(LinesOf(outcome.err),
              ElementsAre(AllOf(HasSubstr("c.jpg: INVALID_ARGUMENT"),
                                HasSubstr("IMAGE_FORMAT_UNSUPPORTED"))));
}

TEST_F(StreamCommandTest, KeepsTheOrderIfAsked) {
  Start();
  for (int i = 10; i < 40; ++i) AddPicture(absl::StrCat(i, ".png"));
  const Outcome outcome = Stream({folder_, "--ordered", "--max_in_flight=8"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
  const std::vector<std::string> lines = LinesOf(outcome.out);
  ASSERT_EQ(lines.size(), 30);
  for (int i = 0; i < 30; ++i) {
    EXPECT_THAT(lines[i], Answered(absl::StrCat(10 + i, ".png")));
  }
}

TEST_F(StreamCommandTest, ReadsNamesFromStandardInput) {
  Start();
  std::istringstream names(absl::StrCat(AddPicture("a.png"), "\n\n", folder_,
                                        "/none.png\n", AddPicture("b.png")));
  std::streambuf* const before = std::cin.rdbuf(names.rdbuf());
  const Outcome outcome = Stream({"-"});
  std::cin.rdbuf(before);
  std::cin.clear();
  EXPECT_EQ(outcome.exit_code, kExitUsage);
  EXPECT_THAT(LinesOf(outcome.out),
              UnorderedElementsAre(Answered("a.png"), Answered("b.png"),
                                   HasSubstr("none.png")));
}

TEST_F(StreamCommandTest, AFolderWithoutPicturesIsAnError) {
  Start();
  Add("notes.txt", "not sent");
  for (const std::string flag : {"--ordered", "--watch=1ms"}) {
    const Outcome outcome = Stream({folder_, flag});
    EXPECT_EQ(outcome.exit_code, kExitRpcError) << flag;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(LinesOf(outcome.err), ElementsAre(HasSubstr("no picture")));
  }
}

TEST_F(StreamCommandTest, SaysWhyTheServerEndedIt) {
  Start();
  AddPicture("a.png");
  const Outcome outcome = Stream({folder_, "--max_in_flight=513"});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_THAT(outcome.err, HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(outcome.err, HasSubstr("512"));
}

TEST_F(StreamCommandTest, SendsAgainWhatAServerThatRestartsHasNotAnswered) {
  v1::ServerConfig config;
  config.mutable_drain_delay()->set_seconds(0);
  for (int i = 100; i < 400; ++i) AddPicture(absl::StrCat(i, ".png"));
  for (const bool ordered : {true, false}) {
    Start("", config);
    const int port = server_->server().port();
    Outcome outcome;
    std::thread client([&] {
      outcome =
          Invoke(RunStream, {folder_, absl::StrCat("--server=127.0.0.1:", port),
                             ordered ? "--ordered" : "--max_in_flight=32"});
    });
    for (int restart = 0; restart < 2; ++restart) {
      WaitUntil([&] { return server_->Sum("sfmamba_items_total", {}) >= 20; },
                "answers of the server");
      server_->server().Shutdown();
      server_ = nullptr;
      absl::SleepFor(absl::Milliseconds(500));
      config.set_port(port);
      Start("", config);
    }
    Join(client, "the end of the stream");
    config.clear_port();
    EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.err;
    std::vector<std::string> lines = LinesOf(outcome.out);
    ASSERT_EQ(lines.size(), 300);
    if (!ordered) std::sort(lines.begin(), lines.end());
    for (int i = 0; i < 300; ++i) {
      EXPECT_THAT(lines[i], Answered(absl::StrCat(100 + i, ".png")));
    }
  }
}

TEST_F(StreamCommandTest, AServerThatIsNotThereIsSaidAtOnce) {
  Start();
  const std::string picture = AddPicture("a.png");
  const std::string server =
      absl::StrCat("127.0.0.1:", server_->server().port());
  server_->server().Shutdown();
  server_ = nullptr;
  const Outcome outcome = Invoke(RunStream, {folder_, "--server=" + server});
  EXPECT_EQ(outcome.exit_code, kExitRpcError);
  EXPECT_THAT(outcome.out, HasSubstr("a.png"));
  EXPECT_THAT(outcome.err, HasSubstr("nothing listens at " + server));
}

TEST_F(StreamCommandTest, WrongUsageIsSaid) {
  EXPECT_EQ(Invoke(RunStream, {}).exit_code, kExitUsage);
  EXPECT_EQ(Invoke(RunStream, {"a", "b"}).exit_code, kExitUsage);
  EXPECT_THAT(Invoke(RunStream, {folder_ + "/none"}).err,
              HasSubstr("is no folder"));
  EXPECT_THAT(Invoke(RunStream, {folder_, "--method=guess"}).err,
              HasSubstr("got 'guess'"));
}

}  // namespace
}  // namespace sfmamba::client
