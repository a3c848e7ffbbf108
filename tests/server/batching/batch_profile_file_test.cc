#include "server/batching/batch_profile_file.h"

#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::batching {
namespace {

using ::testing::HasSubstr;

const BatchProfileKey kKey = {"abc123", "NVIDIA H100 80GB", "42"};
const std::vector<BatchTime> kTimes = {
    {{224, 320}, 8, absl::Microseconds(1250), absl::Microseconds(1500)},
    {{64, 64, ImageType::kFloat32},
     1,
     absl::Milliseconds(300),
     absl::Milliseconds(300)},
};

absl::Status Parse(const std::string& text) {
  return ParseBatchProfile(kKey, text).status();
}

TEST(BatchProfileFileTest, TextIsParsedBack) {
  const auto times = ParseBatchProfile(kKey, BatchProfileText(kKey, kTimes));
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->size(), kTimes.size());
  for (size_t i = 0; i < kTimes.size(); ++i) {
    EXPECT_EQ((*times)[i].key, kTimes[i].key);
    EXPECT_EQ((*times)[i].images, kTimes[i].images);
    EXPECT_EQ((*times)[i].median, kTimes[i].median);
    EXPECT_EQ((*times)[i].p95, kTimes[i].p95);
  }
}

TEST(BatchProfileFileTest, AnotherKeySaysWhichPartDiffers) {
  const std::string text = BatchProfileText(kKey, kTimes);
  const auto says = [&](BatchProfileKey key, const std::string& part) {
    const absl::Status status = ParseBatchProfile(key, text).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  };
  says({"other", kKey.device, kKey.build}, "content \"abc123\"");
  says({kKey.content, "other", kKey.build}, "device \"NVIDIA H100 80GB\"");
  says({kKey.content, kKey.device, "43"}, "build \"42\", not for \"43\"");
}

TEST(BatchProfileFileTest, BrokenTextIsRefusedWithItsField) {
  const std::string text = BatchProfileText(kKey, kTimes);
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& why) {
    const absl::Status status = Parse(absl::StrReplaceAll(text, {{from, to}}));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << to << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << to;
  };
  refused("profile 2", "profile 1", "expected JSON with format");
  refused("\"times\"", "\"time\"", "times");
  refused("median_us", "mean_us", "times[0]");
  refused("224", "-224", "times[0]");
  refused("320", "99999999", "times[0]");
  refused("320", "\"320\"", "times[0]");
  refused("uint8", "int8", "times[0]");
  refused("1250.0", "null", "times[0]");
  refused("1250.0", "0", "times[0]");
  refused("1250.0", "1501", "times[0]");
  refused("1250.0", "1e300", "times[0]");
  refused("float32", "float64", "times[1]");
  refused("{", "[", "expected JSON with format");
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_TRUE(absl::IsInvalidArgument(Parse(text.substr(0, length))))
        << length;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Parse(std::string(1 << 20, '['))));
}

TEST(BatchProfileFileTest, ADevicesNameMayBeAnyBytes) {
  const BatchProfileKey key = {"abc123", "GPU \xff", "42"};
  const std::string text = BatchProfileText(key, kTimes);
  const absl::Status status = ParseBatchProfile(key, text).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("device \"GPU "));
}

}  // namespace
}  // namespace sfmamba::batching
