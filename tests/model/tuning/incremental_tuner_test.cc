#include "model/tuning/incremental_tuner.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sfmamba::tuning {
namespace {

using ::testing::HasSubstr;

const ScanDevice kDevice{"NVIDIA H200", 132, "0123abcd"};

ScanShape Shape(int sequences, int length = 198) {
  return {ScanShape::kBFloat16, 160, 8, sequences, length, false};
}

// Returns a plan that is never a default or a fallback.
kernels::ScanPlan OddPlan() {
  kernels::ScanPlan plan;
  plan.kernel = kernels::ScanPlan::kFold;
  plan.rows = 1;
  return plan;
}

bool IsOddPlan(const kernels::ScanPlan& plan) {
  return plan.kernel == kernels::ScanPlan::kFold && plan.rows == 1;
}

// Tests a tuner for a device on which OddPlan() is always the fastest plan.
// Each measurement takes 10 ms on a fake clock.
class IncrementalTunerTest : public testing::Test {
 protected:
  IncrementalTunerTest()
      : folder_(testing::TempDir() + "/" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    options_.budget = absl::Hours(1);
    options_.measured = [this](const model::ScanMeasurement& measurement) {
      measurements_.push_back(measurement);
    };
    options_.failed = [this](const absl::Status& status) {
      absl::StrAppend(&failures_, status.message(), "\n");
    };
  }

  absl::StatusOr<std::unique_ptr<IncrementalTuner>> Create() {
    return IncrementalTuner::Create(
        options_, device_,
        [this]() -> absl::StatusOr<MeasureScan> {
          ++timers_;
          return [this](const ScanShape& shape, const kernels::ScanPlan& plan) {
            return Measure(shape, plan);
          };
        },
        [this] { return time_; });
  }
  // Makes a tuner, as a server does when it starts.
  std::unique_ptr<IncrementalTuner> Start() {
    auto tuner = Create();
    EXPECT_TRUE(tuner.ok()) << tuner.status();
    return *std::move(tuner);
  }

  absl::StatusOr<double> Measure(const ScanShape& shape,
                                 const kernels::ScanPlan& plan) {
    time_ += absl::Milliseconds(10);
    measured_.insert(ToString(shape));
    if (fails_) return absl::InternalError("device lost");
    return IsOddPlan(plan) ? 1 : 2;
  }
  // Returns how long measuring these shapes takes.
  absl::Duration TimeFor(const std::vector<ScanShape>& shapes) const {
    size_t plans = 0;
    for (const ScanShape& shape : shapes) {
      plans += CandidatePlans(device_.multiprocessors, shape).size();
    }
    return plans * absl::Milliseconds(10);
  }

  const std::string folder_;
  model::ScanTuner::Options options_;
  ScanDevice device_ = kDevice;
  absl::Time time_ = absl::UnixEpoch();
  bool fails_ = false;
  int timers_ = 0;
  std::set<std::string> measured_;  // The measured shapes.
  std::vector<model::ScanMeasurement> measurements_;
  std::string failures_;
};

TEST_F(IncrementalTunerTest, AModelRunsByWhatWasMeasuredForIt) {
  const ScanPlanTable table = Start()->TableFor({Shape(1), Shape(64)});
  EXPECT_EQ(table.device(), kDevice);
  ASSERT_EQ(table.entries().size(), 2);
  EXPECT_TRUE(IsOddPlan(ChooseScanPlan(&table, kDevice, Shape(64))));
}

TEST_F(IncrementalTunerTest, TheNextModelNeedsOnlyItsOwnScansMeasured) {
  const auto tuner = Start();
  tuner->TableFor({Shape(1), Shape(64)});
  measured_.clear();
  EXPECT_EQ(tuner->TableFor({Shape(1), Shape(64), Shape(8)}).entries().size(),
            3);
  EXPECT_EQ(measured_, std::set<std::string>({ToString(Shape(8))}));
  const int timers = timers_;
  tuner->TableFor({Shape(8)});
  EXPECT_EQ(timers_, timers) << "nothing was missing";
}

TEST_F(IncrementalTunerTest, TheNextStartReadsWhatThisOneWrote) {
  options_.path = folder_ + "/table";
  Start()->TableFor({Shape(1)});
  Start()->TableFor({Shape(1), Shape(64)});
  measured_.clear();
  const ScanPlanTable table = Start()->TableFor({Shape(1), Shape(64)});
  EXPECT_TRUE(measured_.empty());
  EXPECT_EQ(table.entries().size(), 2);
  EXPECT_EQ(ScanPlanTable::Read(options_.path)->Text(), table.Text());
}

TEST_F(IncrementalTunerTest, AnEntryOfTheFileIsNotMeasuredAgain) {
  options_.path = folder_ + "/table";
  ScanPlanTable known(kDevice);
  known.Set({Shape(64), OddPlan(), /*microseconds=*/9});
  ASSERT_TRUE(known.Write(options_.path).ok());
  const ScanPlanTable table = Start()->TableFor({Shape(1), Shape(64)});
  EXPECT_EQ(measured_, std::set<std::string>({ToString(Shape(1))}));
  ASSERT_EQ(table.entries().size(), 2);
  EXPECT_EQ(table.entries()[0].microseconds, 9);
}

// A table of another build is not valid for the kernels of this build.
TEST_F(IncrementalTunerTest, ATableOfAnotherBuildIsReplaced) {
  options_.path = folder_ + "/table";
  device_.build = "another";
  Start()->TableFor({Shape(1), Shape(64)});
  device_ = kDevice;
  measured_.clear();
  Start()->TableFor({Shape(64)});
  EXPECT_EQ(measured_, std::set<std::string>({ToString(Shape(64))}));
  const auto file = ScanPlanTable::Read(options_.path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->device(), kDevice);
  EXPECT_EQ(file->entries().size(), 1);
}

TEST_F(IncrementalTunerTest, ATableOfAnotherGpuIsLeftAsItIs) {
  options_.path = folder_ + "/table";
  device_.name = "NVIDIA A100";
  Start()->TableFor({Shape(1)});
  const std::string text = ScanPlanTable::Read(options_.path)->Text();
  device_ = kDevice;
  EXPECT_EQ(Start()->TableFor({Shape(64)}).device(), kDevice);
  EXPECT_EQ(ScanPlanTable::Read(options_.path)->Text(), text);
  EXPECT_THAT(failures_, HasSubstr("expected NVIDIA H200, got NVIDIA A100"));
}

TEST_F(IncrementalTunerTest, KeepsToItsBudgetForEachModel) {
  options_.budget = TimeFor({Shape(1), Shape(8)}) +
                    // The budget ends while the third shape is measured.
                    absl::Milliseconds(50);
  const auto tuner = Start();
  const absl::Time start = time_;
  EXPECT_EQ(tuner->TableFor({Shape(1), Shape(8), Shape(64)}).entries().size(),
            2);
  EXPECT_LE(time_ - start, options_.budget + absl::Milliseconds(10));
  // The next model or the next start measures the remaining scans.
  EXPECT_EQ(tuner->TableFor({Shape(1), Shape(8), Shape(64)}).entries().size(),
            3);
}

TEST_F(IncrementalTunerTest, SurvivesAFileThatCannotBeWritten) {
  options_.path = folder_ + "/missing/table";
  const auto tuner = Start();
  EXPECT_EQ(tuner->TableFor({Shape(1)}).entries().size(), 1);
  EXPECT_THAT(failures_, HasSubstr("the fold table is not written"));
  // The file is not written, but this process still knows the result.
  measured_.clear();
  EXPECT_EQ(tuner->TableFor({Shape(1)}).entries().size(), 1);
  EXPECT_TRUE(measured_.empty());
}

TEST_F(IncrementalTunerTest, SurvivesAFailingMeasurement) {
  options_.path = folder_ + "/table";
  fails_ = true;
  const auto tuner = Start();
  EXPECT_TRUE(tuner->TableFor({Shape(1)}).entries().empty());
  EXPECT_THAT(failures_, HasSubstr("device lost"));
  EXPECT_FALSE(std::filesystem::exists(options_.path));
  fails_ = false;
  EXPECT_EQ(tuner->TableFor({Shape(1)}).entries().size(), 1);
}

TEST_F(IncrementalTunerTest, SurvivesAGpuWithoutATimer) {
  auto tuner = IncrementalTuner::Create(
      options_, kDevice,
      []() -> absl::StatusOr<MeasureScan> {
        return absl::ResourceExhaustedError("no memory for a stream");
      },
      [this] { return time_; });
  ASSERT_TRUE(tuner.ok()) << tuner.status();
  EXPECT_TRUE((*tuner)->TableFor({Shape(1)}).entries().empty());
  EXPECT_THAT(failures_, HasSubstr("no memory for a stream"));
}

TEST_F(IncrementalTunerTest, AFileThatIsNoTableIsAnError) {
  options_.path = folder_ + "/table";
  std::ofstream(options_.path) << "sfmamba fold table 2\n";
  const absl::Status status = Create().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("line 1"), std::string::npos) << status;
}

TEST_F(IncrementalTunerTest, NothingIsMeasuredWithoutABudget) {
  options_.budget = absl::ZeroDuration();
  options_.path = folder_ + "/table";
  EXPECT_TRUE(Start()->TableFor({Shape(1)}).entries().empty());
  EXPECT_EQ(timers_, 0);
  EXPECT_TRUE(measurements_.empty());
  EXPECT_FALSE(std::filesystem::exists(options_.path));
}

TEST_F(IncrementalTunerTest, ReportsWhatItMeasured) {
  options_.budget = TimeFor({Shape(1)}) + absl::Milliseconds(50);
  Start()->TableFor({Shape(1), Shape(64)});
  ASSERT_EQ(measurements_.size(), 1);
  EXPECT_EQ(measurements_[0].unknown, 2);
  EXPECT_EQ(measurements_[0].measured, 1);
  EXPECT_GE(measurements_[0].time, TimeFor({Shape(1)}));
  EXPECT_EQ(failures_, "");
}

}  // namespace
}  // namespace sfmamba::tuning
