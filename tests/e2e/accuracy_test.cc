// The default models through the real server, on held-out pictures: no change
// may silently make them worse. The sets are made by
// tools/pytorch/make_held_out.py; the figures are those of the models' cards.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/commands/eval_command.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"

namespace sfmamba {
namespace {

constexpr char kSets[] = "tests/e2e/testdata/held_out";
// What other instruction sets' rounding may change: of 192 pictures, four.
constexpr double kMargin = 0.02;

// The number after "<name>": in a line of JSON; fails the test if there is
// none.
double Member(const std::string& json, const std::string& name) {
  const std::string key = absl::StrCat("\"", name, "\": ");
  const size_t at = json.find(key);
  double value = -1;
  if (at != std::string::npos) {
    const size_t begin = at + key.size();
    const size_t size = json.find_first_of(",}", begin) - begin;
    if (absl::SimpleAtod(json.substr(begin, size), &value)) return value;
  }
  ADD_FAILURE() << "no number '" << name << "' in: " << json;
  return value;
}

class AccuracyTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // The runfile is a link, which the server would not follow.
    const std::string models = absl::StrCat(testing::TempDir(), "/models");
    std::filesystem::remove_all(models);
    std::filesystem::copy("models", models,
                          std::filesystem::copy_options::recursive);
    server_ = new ServerProcess({"--model_repository=" + models});
    ASSERT_TRUE(server_->WaitUntilServing()) << server_->output();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  // What `sfmamba eval --json` writes.
  static std::string Eval(const std::string& set, const std::string& model,
                          const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        absl::StrCat("--server=", server_->address()),
        absl::StrCat("--dataset=", kSets, "/", set),
        absl::StrCat("--model=", model), "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out, err;
    EXPECT_EQ(client::RunEval(arguments, client::Console{out, err}), 0)
        << err.str();
    EXPECT_EQ(Member(out.str(), "failed"), 0);
    return out.str();
  }

  static ServerProcess* server_;
};

ServerProcess* AccuracyTest::server_ = nullptr;

TEST_F(AccuracyTest, TheClassifierNamesThings) {
  const std::string report = Eval("things", "everyday");
  EXPECT_EQ(Member(report, "images"), 192);
  EXPECT_NEAR(Member(report, "top1"), 0.771, kMargin);
  EXPECT_NEAR(Member(report, "top5"), 0.979, kMargin);
}

TEST_F(AccuracyTest, TheSegmenterColoursThem) {
  const std::string report = Eval("scenes", "everyday_segmenter");
  EXPECT_EQ(Member(report, "images"), 48);
  EXPECT_NEAR(Member(report, "miou"), 0.510, kMargin);
  EXPECT_NEAR(Member(report, "pixel_accuracy"), 0.934, kMargin);
}

TEST_F(AccuracyTest, TheDetectorFindsThem) {
  // Debian's, which has NumPy.
  const std::string python = "/usr/bin/python3 ";
  if (std::system((python + "-c 'import pycocotools.coco'").c_str()) != 0) {
    GTEST_SKIP() << "pycocotools is not installed";
  }
  const std::string found = absl::StrCat(testing::TempDir(), "/found.json");
  Eval("scenes", "everyday_detector", {"--predictions=" + found});
  FILE* scorer = popen(absl::StrCat(python, "tools/coco_ap.py ", kSets,
                                    "/scenes/annotations.json ", found)
                           .c_str(),
                       "r");
  ASSERT_NE(scorer, nullptr);
  char text[4096];
  const size_t size = fread(text, 1, sizeof(text), scorer);
  ASSERT_EQ(pclose(scorer), 0);
  const std::string report(text, size);
  const size_t mask = report.find("\"mask\"");
  ASSERT_NE(mask, std::string::npos) << report;
  EXPECT_EQ(Member(report, "objects"), 165);
  EXPECT_NEAR(Member(report, "ap50"), 0.696, kMargin);  // The boxes'.
  EXPECT_NEAR(Member(report.substr(mask), "ap50"), 0.655, kMargin);
}

}  // namespace
}  // namespace sfmamba
