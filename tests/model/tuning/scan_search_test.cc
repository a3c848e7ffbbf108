#include "model/tuning/scan_search.h"

#include <fstream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace sfmamba::tuning {
namespace {

const ScanDevice kDevice{"NVIDIA H200", 132, "0123abcd"};

ScanShape Shape(int sequences, int length, int channels = 160, int states = 8) {
  return {ScanShape::kBFloat16, channels, states, sequences, length, false};
}

auto Fields(const kernels::ScanPlan& plan) {
  return std::make_tuple(plan.kernel, plan.threads, plan.lanes,
                         plan.channels_per_thread, plan.rows, plan.items,
                         plan.chunks);
}

std::vector<kernels::ScanPlan> OfKernel(
    const std::vector<kernels::ScanPlan>& plans,
    kernels::ScanPlan::Kernel kernel) {
  std::vector<kernels::ScanPlan> own;
  for (const kernels::ScanPlan& plan : plans) {
    if (plan.kernel == kernel) own.push_back(plan);
  }
  return own;
}

std::set<int> Rows(const std::vector<kernels::ScanPlan>& plans) {
  std::set<int> rows;
  for (const kernels::ScanPlan& plan : plans) rows.insert(plan.rows);
  return rows;
}

// ---- Candidates ----

TEST(CandidatePlansTest, AreValidDifferentAndBeginWithTheDefault) {
  for (const int sequences : {1, 2, 31, 128, 512}) {
    for (const int length : {1, 51, 198, 3138, 50178}) {
      for (const int channels : {8, 66, 75, 160, 512}) {
        for (const int states : {3, 8, 16}) {
          const ScanShape shape = Shape(sequences, length, channels, states);
          const auto plans = CandidatePlans(132, shape);
          EXPECT_EQ(Fields(plans[0]),
                    Fields(kernels::DefaultScanPlan(132, sequences, length,
                                                    channels, states)));
          std::set<decltype(Fields(plans[0]))> seen;
          for (const kernels::ScanPlan& plan : plans) {
            EXPECT_TRUE(seen.insert(Fields(plan)).second) << ToString(shape);
            EXPECT_EQ(kernels::CheckScanPlan(plan), absl::OkStatus());
            EXPECT_LE(plan.rows, sequences);
            EXPECT_LE(plan.chunks, length);
          }
          EXPECT_LE(plans.size(), 80) << ToString(shape);
        }
      }
    }
  }
}

TEST(CandidatePlansTest, LanesFoldOnlyWhileTheDeviceStaysFull) {
  const auto one =
      OfKernel(CandidatePlans(132, Shape(1, 198)), kernels::ScanPlan::kLane);
  EXPECT_EQ(Rows(one), std::set<int>({0}));
  const auto many =
      OfKernel(CandidatePlans(132, Shape(512, 198)), kernels::ScanPlan::kLane);
  EXPECT_EQ(Rows(many), std::set<int>({0, 256, 128, 64}));
  std::set<int> lanes;
  for (const kernels::ScanPlan& plan : many) lanes.insert(plan.lanes);
  EXPECT_EQ(lanes, std::set<int>({1, 2, 4, 8}));
}

// A row of 96 channels needs 3 warps. With 176 rows, each scheduler of the 132
// multiprocessors gets one warp.
TEST(CandidatePlansTest, ADeviceIsFullWithAWarpForEachScheduler) {
  const auto rows = [](int sequences) {
    std::set<int> rows;
    for (const kernels::ScanPlan& plan :
         OfKernel(CandidatePlans(132, Shape(sequences, 198, 96)),
                  kernels::ScanPlan::kLane)) {
      if (plan.lanes == 1) rows.insert(plan.rows);
    }
    return rows;
  };
  EXPECT_EQ(rows(352), std::set<int>({0, 176}));
  EXPECT_EQ(rows(350), std::set<int>({0}));
}

TEST(CandidatePlansTest, FoldsSweepThePapersRowsWithItemsOfTheRightSize) {
  const auto folds =
      OfKernel(CandidatePlans(132, Shape(128, 51)), kernels::ScanPlan::kFold);
  EXPECT_EQ(Rows(folds), std::set<int>({1, 2, 4, 8, 16, 32, 64, 128}));
  for (const kernels::ScanPlan& plan : folds) {
    // This is the smallest number of items with which 32 threads cover 51 or
    // 102 tokens.
    if (plan.rows == 128) {
      EXPECT_EQ(plan.items, 2);
    } else if (plan.rows == 64) {
      EXPECT_EQ(plan.items, 4);
    }
  }
  std::set<int> items;
  for (const kernels::ScanPlan& plan : folds) {
    if (plan.rows == 1) items.insert(plan.items);
  }
  EXPECT_EQ(items, std::set<int>({7, 8, 13, 16}));
  // A prime number of sequences can be folded, too.
  EXPECT_EQ(Rows(OfKernel(CandidatePlans(132, Shape(31, 51)),
                          kernels::ScanPlan::kFold)),
            std::set<int>({1, 3, 7, 15, 31}));
}

TEST(CandidatePlansTest, OnlyFewLongSequencesAreCutIntoChunks) {
  EXPECT_TRUE(
      OfKernel(CandidatePlans(132, Shape(1, 51)), kernels::ScanPlan::kChunk)
          .empty());
  EXPECT_TRUE(
      OfKernel(CandidatePlans(132, Shape(512, 3138)), kernels::ScanPlan::kChunk)
          .empty());
  // Every number of lanes occurs, although the default plan has only one of
  // them.
  std::set<std::pair<int, int>> chunks, expected;
  for (const kernels::ScanPlan& plan : OfKernel(
           CandidatePlans(132, Shape(1, 3138)), kernels::ScanPlan::kChunk)) {
    chunks.emplace(plan.chunks, plan.lanes);
  }
  for (const int count : {4, 8, 16, 32, 64}) {
    for (const int lanes : {1, 2, 4, 8}) expected.emplace(count, lanes);
  }
  EXPECT_EQ(chunks, expected);
}

TEST(RaggedLengthsTest, AreEvenFromAQuarterUp) {
  EXPECT_EQ(RaggedLengths(Shape(4, 400)),
            std::vector<int>({100, 400, 200, 300}));
  EXPECT_EQ(RaggedLengths(Shape(1, 198)), std::vector<int>({198}));
  EXPECT_EQ(RaggedLengths(Shape(2, 1)), std::vector<int>({1, 1}));
}

// ---- Tuning ----

// A device on which one plan is known to be the fastest, with a fake clock.
class FakeDevice {
 public:
  absl::StatusOr<double> Measure(const ScanShape& shape,
                                 const kernels::ScanPlan& plan) {
    ++calls;
    time += absl::Milliseconds(10);
    if (plan.kernel == refused) return absl::InvalidArgumentError("no such");
    if (shape.length > 1000) return absl::ResourceExhaustedError("too large");
    if (calls == failing_call) return absl::InternalError("device lost");
    const bool best = plan.lanes == (shape.length < 100 ? 2 : 4) &&
                      plan.rows == 0 && plan.kernel == kernels::ScanPlan::kLane;
    return best ? 5 : 7;
  }

  absl::StatusOr<ScanPlanTable> Tune(const std::vector<ScanShape>& shapes,
                                     absl::Duration budget = absl::Hours(1)) {
    ScanSearchOptions options;
    options.budget = budget;
    options.now = [this] { return time; };
    return SearchScanPlans(
        kDevice, shapes,
        [this](const ScanShape& shape, const kernels::ScanPlan& plan) {
          return Measure(shape, plan);
        },
        options);
  }

  int calls = 0;
  int failing_call = -1;
  kernels::ScanPlan::Kernel refused = kernels::ScanPlan::kChunk;
  absl::Time time = absl::UnixEpoch();
};

TEST(SearchScanPlansTest, KeepsTheFastestPlanOfEachShape) {
  FakeDevice device;
  const auto table = device.Tune({Shape(128, 198), Shape(128, 51, 320)});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->device(), kDevice);
  ASSERT_EQ(table->entries().size(), 2);
  EXPECT_EQ(table->entries()[0].plan.lanes, 4);
  EXPECT_EQ(table->entries()[0].microseconds, 5);
  EXPECT_EQ(table->entries()[0].shape.length, 198);
  EXPECT_EQ(table->entries()[1].plan.lanes, 2);
  EXPECT_EQ(device.calls, CandidatePlans(132, Shape(128, 198)).size() +
                              CandidatePlans(132, Shape(128, 51, 320)).size());
}

TEST(SearchScanPlansTest, PlansThatTheKernelRefusesAreLeftOut) {
  FakeDevice device;
  device.refused = kernels::ScanPlan::kLane;
  const auto table = device.Tune({Shape(128, 198)});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->entries()[0].plan.kernel, kernels::ScanPlan::kFold);
}

TEST(SearchScanPlansTest, ShapesThatDoNotFitAreLeftOut) {
  FakeDevice device;
  const auto table = device.Tune({Shape(512, 3138), Shape(1, 198)});
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->entries().size(), 1);
  EXPECT_EQ(table->entries()[0].shape.sequences, 1);
}

TEST(SearchScanPlansTest, StopsWhenTheTimeIsUsedUp) {
  const std::vector<ScanShape> shapes = {Shape(1, 198), Shape(1, 51, 320),
                                         Shape(8, 198)};
  const int first = CandidatePlans(132, shapes[0]).size();
  const int second = CandidatePlans(132, shapes[1]).size();
  FakeDevice device;
  // The time is up while the second shape is measured, so this shape is left
  // out.
  const auto table =
      device.Tune(shapes, (first + second - 1) * absl::Milliseconds(10));
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->entries().size(), 1);
  EXPECT_EQ(table->entries()[0].shape.channels, 160);
  EXPECT_EQ(device.calls, first + second - 1);
  EXPECT_TRUE(device.Tune(shapes, absl::ZeroDuration())->entries().empty());
  EXPECT_EQ(device.calls, first + second - 1);
}

TEST(SearchScanPlansTest, AFailingDeviceEndsIt) {
  FakeDevice device;
  device.failing_call = 3;
  const absl::Status status = device.Tune({Shape(128, 198)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "bf16 160 channels 8 states 128 x 198: device lost");
}

// ---- To a file ----

TEST(TuneToFileTest, ReplacesTheFileByTheTable) {
  const std::string path = testing::TempDir() + "/table";
  std::ofstream(path) << "an old table";
  FakeDevice device;
  const auto table = TuneToFile(
      kDevice, {Shape(128, 198)},
      [&](const ScanShape& shape, const kernels::ScanPlan& plan) {
        return device.Measure(shape, plan);
      },
      {}, path);
  ASSERT_TRUE(table.ok()) << table.status();
  const auto read = ScanPlanTable::Read(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Text(), table->Text());
}

TEST(TuneToFileTest, LeavesTheFileIfADeviceFails) {
  const std::string path = testing::TempDir() + "/untouched";
  FakeDevice device;
  device.failing_call = 3;
  const absl::Status status =
      TuneToFile(
          kDevice, {Shape(128, 198)},
          [&](const ScanShape& shape, const kernels::ScanPlan& plan) {
            return device.Measure(shape, plan);
          },
          {}, path)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(std::ifstream(path).good());
}

}  // namespace
}  // namespace sfmamba::tuning
