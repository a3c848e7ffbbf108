#include "server/batching/batch_profile_file.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

using ::testing::HasSubstr;

const std::vector<BatchTime> kTimes = {
    {{224, 320}, 8, absl::Microseconds(1250), absl::Microseconds(1500)},
    {{64, 64, ImageType::kFloat32},
     1,
     absl::Milliseconds(300),
     absl::Milliseconds(300)},
};

TEST(BatchTimesTest, TextIsParsedBack) {
  const auto times = ParseBatchTimes(BatchTimesText(kTimes));
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), kTimes.size());
  for (size_t i = 0; i < kTimes.size(); ++i) {
    EXPECT_EQ((*times)[i].key, kTimes[i].key);
    EXPECT_EQ((*times)[i].images, kTimes[i].images);
    EXPECT_EQ((*times)[i].median, kTimes[i].median);
    EXPECT_EQ((*times)[i].p95, kTimes[i].p95);
  }
}

TEST(BatchTimesTest, TheLargestNumbersAreParsed) {
  EXPECT_TRUE(
      ParseBatchTimes("65536 65536 uint8 65536 3600000000 3600000000\n").ok());
  for (const char* line : {"65537 65536 uint8 65536 3600000000 3600000000\n",
                           "65536 65537 uint8 65536 3600000000 3600000000\n",
                           "65536 65536 uint8 65537 3600000000 3600000000\n",
                           "65536 65536 uint8 65536 3600000000 3600000001\n"}) {
    EXPECT_FALSE(ParseBatchTimes(line).ok()) << line;
  }
}

TEST(BatchTimesTest, BrokenTextIsRefusedWithItsLine) {
  const std::string text = BatchTimesText(kTimes);
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& why) {
    const absl::Status status =
        ParseBatchTimes(absl::StrReplaceAll(text, {{from, to}})).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << to << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << to;
  };
  refused("224", "-224", "line 1");
  refused("320", "99999999", "line 1");
  refused("320", "\"320\"", "line 1");
  refused(" 8 ", " 0 ", "line 1");
  refused(" 8 ", " ", "line 1");
  refused("uint8", "int8", "line 1");
  refused("1250", "null", "line 1");
  refused("1250", "nan", "line 1");
  refused("1250", "0", "line 1");
  refused("1250", "1501", "line 1");
  refused("1250", "1e300", "line 1");
  refused("float32", "float64", "line 2");
  refused("\n", "", "line 1");
}

}  // namespace
}  // namespace sfmamba::batching
