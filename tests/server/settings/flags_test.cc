#include "server/settings/flags.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/settings/setting.h"

namespace sfmamba::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

absl::Status Parse(std::vector<std::string> arguments, CommandLine* line) {
  arguments.insert(arguments.begin(), "sfmamba_server");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseFlags(argv.size(), argv.data(), line);
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  CommandLine line;
  return std::string(Parse(arguments, &line).message());
}

// Returns `config` after the flags are applied.
v1::ServerConfig Applied(const std::vector<std::string>& arguments,
                         v1::ServerConfig config = {}) {
  CommandLine line;
  const absl::Status status = Parse(arguments, &line);
  EXPECT_TRUE(status.ok()) << status;
  ApplyFlags(line, &config);
  return config;
}

void ForEachFlag(const std::function<void(const FieldDescriptor&)>& visit) {
  for (const Descriptor* message :
       {v1::Command::descriptor(), v1::ServerConfig::descriptor()}) {
    for (int i = 0; i < message->field_count(); ++i) visit(*message->field(i));
  }
}

TEST(FlagsTest, HelpNamesEachWithWhatStandsBesideItsField) {
  const std::string help = FlagsHelp();
  ForEachFlag([&help](const FieldDescriptor& field) {
    size_t start = std::string::npos;
    for (const char* end : {"=", " ", "\n"}) {
      start =
          std::min(start, help.find(absl::StrCat("  --", field.name(), end)));
    }
    ASSERT_NE(start, std::string::npos) << field.name();
    // The text has no line breaks.
    const std::string text = absl::StrJoin(
        absl::StrSplit(help.substr(start, help.find("\n  --", start) - start),
                       absl::ByAnyChar(" \n"), absl::SkipEmpty()),
        " ");
    EXPECT_NE(text.find(SettingOf(field).help()), std::string::npos) << text;
    EXPECT_NE(text.find(SettingOf(field).default_()), std::string::npos)
        << text;
    EXPECT_NE(text.find(SettingOf(field).range()), std::string::npos) << text;
  });
}

TEST(FlagsTest, HelpIsForATerminalAndBeginsWithWhatMattersFirst) {
  const std::string help = FlagsHelp();
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    EXPECT_LE(line.size(), 100u) << line;
  }
  const size_t second_topic = help.find("\n\n");
  for (const char* flag : {"--model_repository", "--port", "--device"}) {
    EXPECT_LT(help.find(flag), second_topic) << flag;
  }
  EXPECT_GT(help.find("--keepalive_time"), second_topic);
}

TEST(FlagsTest, HelpShowsFormRangeAndDefault) {
  const std::string help = FlagsHelp();
  for (const char* text :
       {"  --port=N\n      gRPC port; 0: any free one. [0 to 65535, default "
        "8001]\n",
        "  --device=auto|cpu|cuda\n", "[default auto]\n", "  --gpus=N,N\n",
        "  --max_image_bytes=BYTES\n", "  --drain_delay=DURATION\n",
        "  --tune\n", "  --exit_on_load_error=false\n", "[default true]\n",
        "  --config=FILE\n"}) {
    EXPECT_NE(help.find(text), std::string::npos) << text << help;
  }
  for (const char* text : {"default false", "default ]", " []"}) {
    EXPECT_EQ(help.find(text), std::string::npos) << text << help;
  }
}

TEST(FlagsTest, EachFieldsDefaultCanBeGiven) {
  v1::ServerConfig defaults;
  SetDefaults(&defaults);
  std::vector<std::string> arguments;
  ForEachFlag([&arguments](const FieldDescriptor& field) {
    const std::string& value = SettingOf(field).default_();
    if (!value.empty()) {
      arguments.push_back(absl::StrCat("--", field.name(), "=", value));
    }
  });
  EXPECT_EQ(Applied(arguments).DebugString(), defaults.DebugString());
}

TEST(FlagsTest, TheFormsOfAFlag) {
  CommandLine line;
  ASSERT_TRUE(Parse({"--tune", "--config", "a", "--help=false"}, &line).ok());
  EXPECT_TRUE(line.command.tune());
  EXPECT_EQ(line.command.config(), "a");
  EXPECT_FALSE(line.command.help());
  const v1::ServerConfig config =
      Applied({"--port", "1", "--random_init", "--host=a=b", "--port=2"});
  EXPECT_EQ(config.port(), 2);
  EXPECT_TRUE(config.random_init());
  EXPECT_EQ(config.host(), "a=b");
}

TEST(FlagsTest, AFlagWinsOverTheFile) {
  v1::ServerConfig file;
  file.set_random_init(true);
  file.set_decode_threads(3);
  file.set_host("a");
  file.add_gpus(1);
  file.mutable_drain_delay()->set_nanos(1);
  const v1::ServerConfig config =
      Applied({"--random_init=false", "--decode_threads=0",
               "--gpus=", "--drain_delay=2s"},
              file);
  EXPECT_FALSE(config.random_init());
  EXPECT_EQ(config.decode_threads(), 0);
  EXPECT_EQ(config.host(), "a");
  EXPECT_TRUE(config.gpus().empty());
  EXPECT_EQ(config.drain_delay().seconds(), 2);
  EXPECT_EQ(config.drain_delay().nanos(), 0);
}

TEST(FlagsTest, AFlagOfTextsMayBeGivenSeveralTimes) {
  v1::ServerConfig file;
  file.add_model("c=/c");
  const v1::ServerConfig config =
      Applied({"--model=a=/a,b", "--model", "b=/b"}, file);
  ASSERT_EQ(config.model_size(), 2);
  EXPECT_EQ(config.model(0), "a=/a,b");
  EXPECT_EQ(config.model(1), "b=/b");
  EXPECT_EQ(Applied({}, file).model(0), "c=/c");
  EXPECT_TRUE(Applied({"--model="}, file).model().empty());
}

TEST(FlagsTest, HelpHasAShortForm) {
  CommandLine line;
  ASSERT_TRUE(Parse({"-h"}, &line).ok());
  EXPECT_TRUE(line.command.help());
}

TEST(FlagsTest, WrongArgumentsAreNamed) {
  EXPECT_EQ(ErrorOf({"serve"}),
            "serve: expected a flag, --name=value; --help lists them");
  EXPECT_EQ(ErrorOf({"--colour=red"}),
            "--colour=red: there is no such flag; --help lists them");
  EXPECT_EQ(ErrorOf({"--port"}), "--port: expected a value");
  EXPECT_EQ(ErrorOf({"--port=x"}),
            "--port: got \"x\", expected a whole number, 0 to 65535");
  EXPECT_EQ(ErrorOf({"--help=x"}), "--help: got \"x\", expected true or false");
}

TEST(FlagsTest, ARemovedFlagNamesItsReplacement) {
  EXPECT_EQ(ErrorOf({"--trace_file=spans"}),
            "--trace_file=spans: trace_file was removed: set trace_endpoint to "
            "a collector, whose file exporter writes files");
  EXPECT_EQ(ErrorOf({"--self_check_period=10s"}),
            "--self_check_period=10s: self_check_period was removed: let a "
            "liveness probe call grpc.health.v1.Health at the gRPC port");
}

TEST(FlagsTest, AMisspeltFlagIsSuggested) {
  EXPECT_EQ(ErrorOf({"--ports=1"}),
            "--ports=1: there is no such flag, did you mean --port");
  EXPECT_EQ(ErrorOf({"--model_repositori", "x"}),
            "--model_repositori: there is no such flag, did you mean "
            "--model_repository");
  EXPECT_EQ(ErrorOf({"--validate-config"}),
            "--validate-config: there is no such flag, did you mean "
            "--validate_config");
}

}  // namespace
}  // namespace sfmamba::server
