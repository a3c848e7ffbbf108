#include "server/repository/precision/precision_records.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

constexpr char kModel[] = "models/m/versions/3";

class PrecisionRecordsTest : public testing::Test {
 protected:
  PrecisionRecordsTest() { std::filesystem::remove_all(folder_); }

  // What the file says, read anew.
  std::optional<PrecisionCheck> Again(const PrecisionKey& key) {
    return PrecisionRecords(folder_, &log_).Read(kModel, key);
  }

  const std::string folder_ = testing::TempDir() + "/precisions";
  const std::string file_ = folder_ + "/m-3.precision";
  const PrecisionKey key_ = {"a network, abc", "cpu", "42"};
  observability::Logger log_{stderr, observability::LogLevel::kError,
                             observability::LogFormat::kText};
};

TEST_F(PrecisionRecordsTest, KeepsWhatWasFound) {
  PrecisionRecords records(folder_, &log_);
  EXPECT_FALSE(records.Read(kModel, key_).has_value());
  for (const bool allowed : {true, false}) {
    records.Write(kModel, key_, {allowed, "some figures"});
    for (const auto& known : {records.Read(kModel, key_), Again(key_)}) {
      ASSERT_TRUE(known.has_value());
      EXPECT_EQ(known->allowed, allowed);
      EXPECT_EQ(known->figures, "some figures");
    }
  }
  EXPECT_TRUE(records.Read("models/other/versions/1", key_).has_value())
      << "they are the same weights";
}

TEST_F(PrecisionRecordsTest, OtherWeightsDevicesAndBuildsAreNotKnown) {
  PrecisionRecords records(folder_, &log_);
  records.Write(kModel, key_, {true, "figures"});
  for (const PrecisionKey& other :
       {PrecisionKey{"another", key_.device, key_.build},
        PrecisionKey{key_.content, "another", key_.build},
        PrecisionKey{key_.content, key_.device, "another"}}) {
    EXPECT_FALSE(records.Read(kModel, other).has_value());
    EXPECT_FALSE(Again(other).has_value());
  }
}

TEST_F(PrecisionRecordsTest, ABrokenFileIsNotKnown) {
  PrecisionRecords(folder_, &log_).Write(kModel, key_, {true, "figures"});
  std::ifstream in(file_, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  for (size_t size = 0; size < text.size(); ++size) {
    std::ofstream(file_, std::ios::binary) << text.substr(0, size);
    EXPECT_FALSE(Again(key_).has_value()) << size;
  }
  std::ofstream(file_, std::ios::binary) << text << "more\n";
  EXPECT_FALSE(Again(key_).has_value());
  std::ofstream(file_, std::ios::binary) << text;
  EXPECT_TRUE(Again(key_).has_value());
}

TEST_F(PrecisionRecordsTest, FiguresOfManyLinesAreOneLine) {
  PrecisionRecords(folder_, &log_).Write(kModel, key_, {false, "one\ntwo"});
  ASSERT_TRUE(Again(key_).has_value());
  EXPECT_EQ(Again(key_)->figures, "one two");
}

TEST_F(PrecisionRecordsTest, AFolderThatCannotBeMadeFailsNothing) {
  PrecisionRecords records("/dev/null/precisions", &log_);
  records.Write(kModel, key_, {true, "figures"});
  EXPECT_TRUE(records.Read(kModel, key_).has_value());
}

TEST_F(PrecisionRecordsTest, ForgetsWhatWasCheckedLongAgo) {
  PrecisionRecords records("", &log_);
  for (int i = 0; i < 1000; ++i) {
    records.Write(kModel, {absl::StrCat(i), "cpu", "42"}, {true, ""});
  }
  EXPECT_FALSE(records.Read(kModel, {"0", "cpu", "42"}).has_value());
  EXPECT_TRUE(records.Read(kModel, {"999", "cpu", "42"}).has_value());
}

}  // namespace
}  // namespace sfmamba::repository
