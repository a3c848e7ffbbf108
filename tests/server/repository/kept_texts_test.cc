#include "server/repository/kept_texts.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

constexpr char kModel[] = "models/m/versions/3";
constexpr char kOther[] = "models/other/versions/1";

class KeptTextsTest : public testing::Test {
 protected:
  KeptTextsTest() { std::filesystem::remove_all(folder_); }

  // Texts that this folder keeps from one start to the next.
  KeptTexts In(const std::string& folder) { return KeptTexts(folder, &log_); }

  const std::string folder_ = testing::TempDir() + "/kept/texts";
  observability::Logger log_{stderr, observability::LogLevel::kError,
                             observability::LogFormat::kText};
};

TEST_F(KeptTextsTest, WhatOneModelHasWrittenIsKnownOfAnotherWithItsKey) {
  KeptTexts texts = In("");
  EXPECT_EQ(texts.Read(kModel, "key"), std::nullopt);
  texts.Write(kModel, "key", "1");
  EXPECT_EQ(texts.Read(kModel, "key"), "1");
  EXPECT_EQ(texts.Read(kOther, "key"), "1");
  EXPECT_EQ(texts.Read(kModel, "another"), std::nullopt);
  texts.Write(kOther, "key", "2");
  EXPECT_EQ(texts.Read(kModel, "key"), "2");
}

TEST_F(KeptTextsTest, AFolderKeepsEachModelsLastText) {
  {
    KeptTexts texts = In(folder_);
    texts.Write(kModel, "key", "1");
    texts.Write(kModel, "key 2\n", "of the same model");
  }
  EXPECT_EQ(In(folder_).Read(kModel, "key 2\n"), "of the same model");
  EXPECT_EQ(In(folder_).Read(kModel, "another\n"), std::nullopt);
  EXPECT_EQ(In(folder_).Read(kOther, "key 2\n"), std::nullopt);
  std::ofstream(folder_ + "/other-1.times") << "anything";
  EXPECT_EQ(In(folder_).Read(kOther, "key 2\n"), std::nullopt);
}

TEST_F(KeptTextsTest, AFileOfMoreThanFourMebibytesIsNotRead) {
  const std::string text((4 << 20) - 3, 'x');
  In(folder_).Write(kModel, "key", text);
  EXPECT_EQ(In(folder_).Read(kModel, "key"), text);
  In(folder_).Write(kModel, "key", text + "x");
  EXPECT_EQ(In(folder_).Read(kModel, "key"), std::nullopt);
}

TEST_F(KeptTextsTest, AFolderThatCannotBeMadeFailsNothing) {
  KeptTexts texts = In("/dev/null/texts");
  texts.Write(kModel, "key", "1");
  EXPECT_EQ(texts.Read(kModel, "key"), "1");
}

TEST_F(KeptTextsTest, WhatIsWrittenAgainReplacesNothingElse) {
  KeptTexts texts = In("");
  texts.Write(kOther, "other key", "its own");
  for (size_t i = 0; i < KeptTexts::kMostTexts; ++i) {
    texts.Write(kModel, "key", absl::StrCat(i));
  }
  EXPECT_EQ(texts.Read(kOther, "other key"), "its own");
}

TEST_F(KeptTextsTest, ForgetsWhatWasWrittenLongAgo) {
  KeptTexts texts = In("");
  for (size_t i = 0; i < 3 * KeptTexts::kMostTexts; ++i) {
    texts.Write(kModel, absl::StrCat(i), absl::StrCat(i));
    // It is written now and then.
    if (i % 10 == 0) texts.Write(kModel, "0", "0");
  }
  EXPECT_EQ(texts.Read(kModel, "0"), "0");
  EXPECT_EQ(texts.Read(kModel, "1"), std::nullopt);
  EXPECT_EQ(texts.Read(kModel, absl::StrCat(3 * KeptTexts::kMostTexts - 1)),
            absl::StrCat(3 * KeptTexts::kMostTexts - 1));
}

}  // namespace
}  // namespace sfmamba::repository
