#include "server/repository/model_name.h"

#include "gtest/gtest.h"

namespace sfmamba::repository {
namespace {

TEST(ModelNameTest, ReadsEachForm) {
  for (const char* name : {"m-1.x", "models/m-1.x"}) {
    const auto parsed = ParseModelName(name, "model");
    ASSERT_TRUE(parsed.ok()) << name;
    EXPECT_EQ(parsed->id, "m-1.x");
    EXPECT_EQ(parsed->version, 0);
    EXPECT_EQ(parsed->label, "");
  }
  EXPECT_EQ(ParseModelName("models/m/versions/12", "model")->version, 12);
  EXPECT_EQ(ParseModelName("models/m/labels/stable", "model")->label, "stable");
}

TEST(ModelNameTest, AVersionThatIsNoNumberIsNotFound) {
  for (const char* version :
       {"0", "01", "-1", "+1", "1 ", "x", "", "99999999999999999999", "1/2"}) {
    const std::string name = std::string("models/m/versions/") + version;
    EXPECT_EQ(ParseModelName(name, "model").status().code(),
              absl::StatusCode::kNotFound)
        << name;
  }
}

TEST(ModelNameTest, OtherNamesAreRefused) {
  for (const char* name :
       {"models/", "models//labels/x", "m/labels/x", "models/m/labels/",
        "models/m/labels/a/b", "models/m/", "models/m/other/1", "../m", "",
        "models/m/labels/\xff"}) {
    EXPECT_EQ(ParseModelName(name, "model").status().code(),
              absl::StatusCode::kInvalidArgument)
        << name;
  }
}

TEST(ModelNameTest, AnErrorTellsWhatWasGotAndExpected) {
  EXPECT_EQ(ParseModelName("../m", "model").status().message(),
            "got \"../m\", expected an id of [A-Za-z0-9][A-Za-z0-9._-]{0,127}");
  EXPECT_EQ(ParseModelName("models/m/x", "model").status().message(),
            "got \"models/m/x\", expected {id}, models/{id}, "
            "models/{id}/versions/{n} or models/{id}/labels/{label}");
}

}  // namespace
}  // namespace sfmamba::repository
