// Runs the default models in the real server on held-out pictures, which were
// not used for training. A change that makes the results worse fails these
// tests. The scripts make_held_out.py and make_held_out_photographs.py in
// models/recipe made the pictures. The model cards state the expected figures.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/commands/eval_command.h"
#include "gtest/gtest.h"
#include "kernels/simd/cpu_features.h"
#include "tests/e2e/server_process.h"

namespace sfmamba {
namespace {

constexpr char kSets[] = "tests/e2e/testdata/held_out";
// The tolerance of an accuracy, about four of 192 pictures. CPUs with other
// instruction sets round differently.
constexpr double kMargin = 0.02;
// The tolerance of an accuracy in a reduced precision. If one picture or object
// makes a greater difference, the tests allow this difference.
constexpr double kMarginOfReduced = 0.003;
constexpr int kObjects = 165;  // The number of objects in all scenes.

// Returns the value of the member `name` in a line of JSON. If there is no such
// member, or if its value is not a number, fails the test.
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

// This is Debian's Python, for which NumPy is installed.
constexpr char kPython[] = "/usr/bin/python3 ";

bool HasScorer() {
  return std::system(
             absl::StrCat(kPython, "-c 'import pycocotools.coco'").c_str()) ==
         0;
}

// Sets the precision of all models in `repository`.
void SetPrecision(const std::string& repository, const std::string& precision) {
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(repository)) {
    if (entry.path().filename() != "config.textproto") continue;
    std::ifstream file(entry.path());
    std::string kept, line;
    while (std::getline(file, line)) {
      if (line.rfind("precision:", 0) != 0) absl::StrAppend(&kept, line, "\n");
    }
    file.close();
    std::ofstream(entry.path()) << kept << "precision: " << precision << "\n";
  }
}

// Runs a server with the default models in the given precision.
class Models {
 public:
  explicit Models(const std::string& precision) {
    // Copies the models. Bazel provides them as symbolic links, which the
    // server does not follow out of its repository.
    const std::string models =
        absl::StrCat(testing::TempDir(), "/models_", precision);
    std::filesystem::remove_all(models);
    std::filesystem::copy("models", models,
                          std::filesystem::copy_options::recursive);
    SetPrecision(models, precision);
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--model_repository=" + models});
    EXPECT_TRUE(server_->WaitUntilServing()) << server_->output();
  }

  // Returns the output of `sfmamba eval --json`.
  std::string Eval(const std::string& set, const std::string& model,
                   const std::vector<std::string>& more = {}) const {
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

  // Returns the output of tools/coco_ap.py for the detections in the file
  // `found`.
  std::string Score(const std::string& found) const {
    FILE* scorer = popen(absl::StrCat(kPython, "tools/coco_ap.py ", kSets,
                                      "/scenes/annotations.json ", found)
                             .c_str(),
                         "r");
    EXPECT_NE(scorer, nullptr);
    if (scorer == nullptr) return "";
    char text[4096];
    const size_t size = fread(text, 1, sizeof(text), scorer);
    EXPECT_EQ(pclose(scorer), 0);
    return std::string(text, size);
  }

 private:
  std::unique_ptr<ServerProcess> server_;
};

// Returns the end of the scorer's output, which contains the figures for masks.
// The figures for boxes come before it.
std::string OfMasks(const std::string& score) {
  const size_t mask = score.find("\"mask\"");
  EXPECT_NE(mask, std::string::npos) << score;
  return mask == std::string::npos ? "" : score.substr(mask);
}

class AccuracyTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { models_ = new Models("FP32"); }
  static void TearDownTestSuite() {
    delete models_;
    models_ = nullptr;
  }

  static Models* models_;
};

Models* AccuracyTest::models_ = nullptr;

TEST_F(AccuracyTest, TheClassifierNamesThings) {
  const std::string report = models_->Eval("things", "everyday");
  EXPECT_EQ(Member(report, "images"), 192);
  EXPECT_NEAR(Member(report, "top1"), 0.771, kMargin);
  EXPECT_NEAR(Member(report, "top5"), 0.979, kMargin);
}

// The expected classes are the answers of the full EfficientNet-Lite0, from
// which this model was trained.
TEST_F(AccuracyTest, TheClassifierOfPhotographsAgreesWithItsTeacher) {
  const std::string report = models_->Eval("photographs", "photographs");
  EXPECT_EQ(Member(report, "images"), 80);
  EXPECT_NEAR(Member(report, "top1"), 0.488, kMargin);
  EXPECT_NEAR(Member(report, "top5"), 0.800, kMargin);
}

TEST_F(AccuracyTest, TheSegmenterColoursThem) {
  const std::string report = models_->Eval("scenes", "everyday_segmenter");
  EXPECT_EQ(Member(report, "images"), 48);
  EXPECT_NEAR(Member(report, "miou"), 0.510, kMargin);
  EXPECT_NEAR(Member(report, "pixel_accuracy"), 0.934, kMargin);
}

TEST_F(AccuracyTest, TheDetectorFindsThem) {
  const std::string report = models_->Eval("scenes", "everyday_detector");
  EXPECT_EQ(Member(report, "objects"), 165);
  EXPECT_NEAR(Member(report, "box_ap50"), 0.681, kMargin);
  EXPECT_NEAR(Member(report, "mask_ap50"), 0.638, kMargin);
}

TEST_F(AccuracyTest, TheDetectorsFiguresAreThoseOfPycocotools) {
  if (!HasScorer()) GTEST_SKIP() << "pycocotools is not installed";
  const std::string found = absl::StrCat(testing::TempDir(), "/found.json");
  const std::string report =
      models_->Eval("scenes", "everyday_detector", {"--predictions=" + found});
  const std::string score = models_->Score(found);
  for (const std::string figure : {"ap", "ap50"}) {
    EXPECT_NEAR(Member(report, "box_" + figure), Member(score, figure), 1e-6);
    EXPECT_NEAR(Member(report, "mask_" + figure),
                Member(OfMasks(score), figure), 1e-6);
  }
}

// Tests a reduced precision. The test's parameter is BF16 or INT8.
class ReducedPrecisionTest : public AccuracyTest,
                             public testing::WithParamInterface<std::string> {
 protected:
  // Returns true if the CPU has the instructions for `precision`. If it lacks
  // them, the server computes in fp32.
  static bool ProcessorHas(const std::string& precision) {
    return precision == "INT8"
               ? kernels::HasInt8()
               : kernels::HasAvx512Bf16() || kernels::HasAmxBf16();
  }

  // Expects that the number `name` differs by at most `margin` between the
  // reports of fp32 and of the reduced precision.
  static void ExpectAlike(const std::string& fp32, const std::string& reduced,
                          const std::string& name, double margin) {
    EXPECT_NEAR(Member(reduced, name), Member(fp32, name), margin) << name;
  }
};

TEST_P(ReducedPrecisionTest, IsAsGoodAsFp32) {
  if (!ProcessorHas(GetParam())) {
    GTEST_SKIP() << "the processor does not compute " << GetParam();
  }
  const Models reduced(GetParam());
  for (const auto& [set, model] :
       {std::pair("things", "everyday"), {"photographs", "photographs"}}) {
    const std::string fp32 = models_->Eval(set, model);
    const std::string same = reduced.Eval(set, model);
    const double margin =
        std::max(kMarginOfReduced, 1.001 / Member(fp32, "images"));
    ExpectAlike(fp32, same, "top1", margin);
    ExpectAlike(fp32, same, "top5", margin);
  }

  const std::string scenes = models_->Eval("scenes", "everyday_segmenter");
  const std::string same_scenes = reduced.Eval("scenes", "everyday_segmenter");
  ExpectAlike(scenes, same_scenes, "miou", kMarginOfReduced);
  ExpectAlike(scenes, same_scenes, "pixel_accuracy", kMarginOfReduced);

  const std::string objects = models_->Eval("scenes", "everyday_detector");
  const std::string same_objects = reduced.Eval("scenes", "everyday_detector");
  for (const char* figure : {"box_ap", "box_ap50", "mask_ap", "mask_ap50"}) {
    ExpectAlike(objects, same_objects, figure,
                std::max(kMarginOfReduced, 1.0 / kObjects));
  }
  // Equal results would mean that the server ignored the reduced precision.
  EXPECT_NE(objects, same_objects);
}

INSTANTIATE_TEST_SUITE_P(Precisions, ReducedPrecisionTest,
                         testing::Values("BF16", "INT8"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sfmamba
