#include "client/commands/flag_set.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FlagSetTest : public testing::Test {
 protected:
  FlagSetTest() : flags_("tool VERB FILE...", "Does things.") {
    flags_.Add("name", "NAME", "what to call it", &name_);
    flags_.Add("count", "N", "how many", &count_);
    flags_.Add("rate", "R", "how fast", &rate_);
    flags_.Add("limit", "L", "how far", &limit_);
    flags_.Add("json", "", "write JSON", &json_);
    flags_.Add("wait", "DURATION", "how long", &wait_);
  }

  std::string name_ = "default";
  int count_ = 3;
  double rate_ = 0.5;
  absl::optional<double> limit_;
  bool json_ = false;
  absl::Duration wait_ = absl::Seconds(2);
  FlagSet flags_;
};

TEST_F(FlagSetTest, DefaultsStay) {
  EXPECT_TRUE(flags_.Parse({})->empty());
  EXPECT_EQ(name_, "default");
  EXPECT_EQ(count_, 3);
  EXPECT_FALSE(json_);
  EXPECT_FALSE(limit_.has_value());
}

TEST_F(FlagSetTest, AnOptionalNumberIsSetByItsFlag) {
  EXPECT_TRUE(flags_.Parse({"--limit=0"}).ok());
  EXPECT_EQ(limit_, 0.0);
}

TEST_F(FlagSetTest, ReadsBothFormsAmongOtherArguments) {
  const auto rest =
      flags_.Parse({"a.jpg", "--name=x=y", "--count", "-7", "-", "-rate=1e3",
                    "--json", "b.jpg", "--wait=1m500ms"});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_THAT(*rest, ElementsAre("a.jpg", "-", "b.jpg"));
  EXPECT_EQ(name_, "x=y");
  EXPECT_EQ(count_, -7);
  EXPECT_EQ(rate_, 1000);
  EXPECT_TRUE(json_);
  EXPECT_EQ(wait_, absl::Minutes(1) + absl::Milliseconds(500));
}

TEST_F(FlagSetTest, ABoolTakesItsValueOnlyBehindAnEqualsSign) {
  json_ = true;
  EXPECT_TRUE(flags_.Parse({"--json=false"}).ok());
  EXPECT_FALSE(json_);
  EXPECT_THAT(*flags_.Parse({"--json", "false"}), ElementsAre("false"));
  EXPECT_TRUE(json_);
}

TEST_F(FlagSetTest, TwoDashesEndTheFlags) {
  EXPECT_THAT(*flags_.Parse({"--count=4", "--", "--count=5"}),
              ElementsAre("--count=5"));
  EXPECT_EQ(count_, 4);
}

TEST_F(FlagSetTest, ErrorsNameTheCulprit) {
  const auto message = [this](std::vector<std::string> arguments) {
    const auto rest = flags_.Parse(arguments);
    EXPECT_EQ(rest.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(rest.status().message());
  };
  EXPECT_EQ(message({"--colour=red"}), "unknown flag '--colour=red'");
  EXPECT_EQ(message({"--coutn=1"}),
            "unknown flag '--coutn=1', did you mean --count");
  EXPECT_EQ(message({"--name"}), "--name needs a value");
  EXPECT_EQ(message({"--count=8x"}),
            "--count: expected a whole number, got '8x'");
  EXPECT_EQ(message({"--count=99999999999"}),
            "--count: expected a whole number, got '99999999999'");
  EXPECT_EQ(message({"--rate=nan"}), "--rate: expected a number, got 'nan'");
  EXPECT_EQ(message({"--limit=x"}), "--limit: expected a number, got 'x'");
  EXPECT_EQ(message({"--json=maybe"}),
            "--json: expected true or false, got 'maybe'");
  EXPECT_THAT(message({"--wait=5"}), HasSubstr("expected a duration"));
}

TEST_F(FlagSetTest, ChecksSeeTheValuesAndAreLeftOutForHelp) {
  std::string seen;
  flags_.AddCheck([&] {
    seen = name_;
    return absl::InvalidArgumentError("it is wrong");
  });
  EXPECT_EQ(flags_.Parse({"--name=x"}).status().message(), "it is wrong");
  EXPECT_EQ(seen, "x");
  EXPECT_TRUE(flags_.Parse({"--name=y", "--help"}).ok());
  EXPECT_EQ(seen, "x");
}

TEST_F(FlagSetTest, HelpShowsUsageAndDefaults) {
  EXPECT_TRUE(flags_.Parse({"--help"}).ok());
  EXPECT_TRUE(flags_.help_requested());
  EXPECT_EQ(flags_.Help(),
            "usage: tool VERB FILE...\n\nDoes things.\n\nflags:\n"
            "  --name NAME      what to call it (default default)\n"
            "  --count N        how many (default 3)\n"
            "  --rate R         how fast (default 0.5)\n"
            "  --limit L        how far\n"
            "  --json           write JSON\n"
            "  --wait DURATION  how long (default 2s)\n");
}

}  // namespace
}  // namespace sfmamba::client
