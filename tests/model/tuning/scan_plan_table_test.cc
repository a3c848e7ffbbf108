#include "model/tuning/scan_plan_table.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

namespace sfmamba::kernels {

bool operator==(const ScanPlan& a, const ScanPlan& b) {
  return a.kernel == b.kernel && a.threads == b.threads && a.lanes == b.lanes &&
         a.channels_per_thread == b.channels_per_thread && a.rows == b.rows &&
         a.items == b.items && a.chunks == b.chunks;
}

}  // namespace sfmamba::kernels

namespace sfmamba::tuning {

namespace {

namespace fs = std::filesystem;
using ::testing::TempDir;

const ScanDevice kDevice{"NVIDIA H200", 132, "0123abcd"};

ScanShape Shape(int sequences, int length, int channels = 160,
                ScanShape::Type type = ScanShape::kBFloat16) {
  return {type, channels, 8, sequences, length, false};
}

kernels::ScanPlan Lane(int lanes, int rows = 0) {
  kernels::ScanPlan plan;
  plan.lanes = lanes;
  plan.rows = rows;
  return plan;
}

kernels::ScanPlan Fold(int rows) {
  kernels::ScanPlan plan;
  plan.kernel = kernels::ScanPlan::kFold;
  plan.rows = rows;
  plan.items = 7;
  return plan;
}

ScanPlanTable SomeTable() {
  ScanPlanTable table(kDevice);
  table.Set({Shape(128, 198), Lane(4, 32), 15.4});
  table.Set({Shape(1, 198), Lane(8), 3.6});
  table.Set({Shape(128, 51, 320), Fold(4), 6.25});
  return table;
}

const char kSomeText[] =
    "sfmamba fold table 1\n"
    "device NVIDIA H200\n"
    "multiprocessors 132\n"
    "build 0123abcd\n"
    "type channels states sequences length batch kernel threads lanes "
    "channels_per_thread rows items chunks microseconds\n"
    "bf16 160 8 128 198 uniform lane 0 4 1 32 0 0 15.400\n"
    "bf16 160 8 1 198 uniform lane 0 8 1 0 0 0 3.600\n"
    "bf16 320 8 128 51 uniform fold 0 1 1 4 7 0 6.250\n";

std::string Changed(absl::string_view from, absl::string_view to) {
  const std::string text = absl::StrReplaceAll(kSomeText, {{from, to}});
  EXPECT_NE(text, kSomeText) << from;
  return text;
}

std::string ParseError(const std::string& text) {
  const auto table = ScanPlanTable::Parse(text);
  if (table.ok()) return "OK";
  EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(table.status().message());
}

// ---- The paper's rule ----

TEST(NearestDivisorTest, GivesTheSpecifiedExamples) {
  EXPECT_EQ(NearestDivisor(128, 4), 4);
  EXPECT_EQ(NearestDivisor(6, 2.5), 2);
  EXPECT_EQ(NearestDivisor(12, 5), 4);
  EXPECT_EQ(NearestDivisor(7, 3), 1);
  EXPECT_EQ(NearestDivisor(1, 0.01), 1);
  EXPECT_EQ(NearestDivisor(1, 100), 1);
  EXPECT_EQ(NearestDivisor(12, 12), 12);
  EXPECT_EQ(NearestDivisor(12, 99), 12);
}

TEST(NearestDivisorTest, IsTheBestOfAllDivisors) {
  for (int count = 1; count <= 60; ++count) {
    for (double wanted = 0; wanted <= count + 1; wanted += 0.25) {
      const int chosen = NearestDivisor(count, wanted);
      ASSERT_EQ(count % chosen, 0);
      for (int other = 1; other <= count; ++other) {
        if (count % other != 0) continue;
        const double better =
            std::fabs(chosen - wanted) - std::fabs(other - wanted);
        ASSERT_LE(better, 0) << count << " " << wanted;
        ASSERT_TRUE(better < 0 || chosen <= other) << count << " " << wanted;
      }
    }
  }
}

// ---- Look-up ----

TEST(FoldTableTest, KeepsOneEntryForAPowerOfTwo) {
  ScanPlanTable table = SomeTable();
  table.Set({Shape(120, 196), Lane(2), 14});
  ASSERT_EQ(table.entries().size(), 3);
  EXPECT_EQ(table.entries()[0].plan.lanes, 2);
  EXPECT_EQ(table.entries()[0].shape.length, 196);
  table.Set({Shape(64, 198), Lane(1), 9});
  table.Set({Shape(128, 198, 160, ScanShape::kFloat), Lane(1), 9});
  EXPECT_EQ(table.entries().size(), 5);
}

TEST(FoldTableTest, HasWhatIsOfTheSamePowerOfTwo) {
  const ScanPlanTable table = SomeTable();
  EXPECT_TRUE(table.Has(Shape(128, 198)));
  EXPECT_TRUE(table.Has(Shape(100, 196)));
  EXPECT_FALSE(table.Has(Shape(64, 198)));
  EXPECT_FALSE(table.Has(Shape(128, 51)));
  EXPECT_FALSE(table.Has(Shape(128, 198, 160, ScanShape::kFloat)));
}

TEST(FoldTableTest, FindsTheNearestInPowersOfTwo) {
  const ScanPlanTable table = SomeTable();
  EXPECT_EQ(table.Nearest(Shape(100, 196))->shape.sequences, 128);
  EXPECT_EQ(table.Nearest(Shape(2, 198))->shape.sequences, 1);
  EXPECT_EQ(table.Nearest(Shape(16, 198))->shape.sequences, 128);
  EXPECT_EQ(table.Nearest(Shape(8, 198))->shape.sequences, 1);
  // The distance between lengths is logarithmic, too.
  ScanPlanTable lengths(kDevice);
  lengths.Set({Shape(32, 200), Lane(1), 1});
  lengths.Set({Shape(32, 1600), Lane(2), 1});
  EXPECT_EQ(lengths.Nearest(Shape(32, 500))->plan.lanes, 1);
  EXPECT_EQ(lengths.Nearest(Shape(32, 600))->plan.lanes, 2);
  // The distance between numbers of sequences is logarithmic as well.
  ScanPlanTable sequences(kDevice);
  sequences.Set({Shape(32, 198), Lane(1), 1});
  sequences.Set({Shape(256, 198), Lane(2), 1});
  EXPECT_EQ(sequences.Nearest(Shape(80, 198))->plan.lanes, 1);
  EXPECT_EQ(sequences.Nearest(Shape(100, 198))->plan.lanes, 2);
  // Both distances together count like the distance of two points in a plane.
  // The first entry has 4 times as many sequences, so its distance is log2(4) =
  // 2. The second entry has twice the sequences and twice the length. Its
  // distance is only sqrt(1 + 1) = 1.4.
  ScanPlanTable both(kDevice);
  both.Set({Shape(128, 200), Lane(1), 1});
  both.Set({Shape(64, 400), Lane(2), 1});
  EXPECT_EQ(both.Nearest(Shape(32, 200))->plan.lanes, 2);
}

TEST(FoldTableTest, AnEntryIsNoGuideToAnotherKindOrFarAway) {
  const ScanPlanTable table = SomeTable();
  EXPECT_EQ(table.Nearest(Shape(128, 198, 192)), nullptr);
  EXPECT_EQ(table.Nearest(Shape(128, 198, 160, ScanShape::kFloat16)), nullptr);
  ScanShape other = Shape(128, 198);
  other.ragged = true;
  EXPECT_EQ(table.Nearest(other), nullptr);
  other = Shape(128, 198);
  other.states = 16;
  EXPECT_EQ(table.Nearest(other), nullptr);
  EXPECT_NE(table.Nearest(Shape(128, 198 * 8)), nullptr);
  EXPECT_EQ(table.Nearest(Shape(128, 198 * 8 + 1)), nullptr);
  EXPECT_EQ(table.Nearest(Shape(1 << 20, 198)), nullptr);
}

TEST(ChooseScanPlanTest, TakesTheTablesPlanWithItsShareOfRows) {
  const ScanPlanTable table = SomeTable();
  EXPECT_EQ(ChooseScanPlan(&table, kDevice, Shape(128, 198)), Lane(4, 32));
  EXPECT_EQ(ChooseScanPlan(&table, kDevice, Shape(256, 198)), Lane(4, 64));
  EXPECT_EQ(ChooseScanPlan(&table, kDevice, Shape(96, 198)), Lane(4, 24));
  // A prime number of sequences is folded unevenly. It gets neither one row nor
  // a row per sequence.
  EXPECT_EQ(ChooseScanPlan(&table, kDevice, Shape(127, 198)), Lane(4, 32));
  // There is at least one row. If the entry's plan has no folding, the result
  // has none.
  EXPECT_EQ(ChooseScanPlan(&table, kDevice, Shape(16, 51, 320)), Fold(1));
  EXPECT_EQ(ChooseScanPlan(&table, kDevice, Shape(2, 198)), Lane(8));
}

TEST(ChooseScanPlanTest, FallsBackWithoutAnEntryOfThisDevice) {
  const ScanPlanTable table = SomeTable();
  const ScanShape known = Shape(128, 198), unknown = Shape(128, 198, 192);
  const auto fallback = [](const ScanShape& shape) {
    return kernels::DefaultScanPlan(132, shape.sequences, shape.length,
                                    shape.channels, shape.states);
  };
  EXPECT_EQ(ChooseScanPlan(nullptr, kDevice, known), fallback(known));
  EXPECT_EQ(ChooseScanPlan(&table, kDevice, unknown), fallback(unknown));
  for (const ScanDevice& other : {ScanDevice{"NVIDIA H100", 132, "0123abcd"},
                                  ScanDevice{"NVIDIA H200", 132, "another"},
                                  ScanDevice{"NVIDIA H200", 120, "0123abcd"}}) {
    EXPECT_EQ(
        ChooseScanPlan(&table, other, known),
        kernels::DefaultScanPlan(other.multiprocessors, 128, 198, 160, 8));
  }
}

TEST(DeterministicScanPlanTest, DependsOnChannelsAndLengthAlone) {
  for (const int channels : {160, 192, 256, 320, 384, 512, 66}) {
    for (const int length : {51, 198, 3138}) {
      const kernels::ScanPlan one =
          DeterministicScanPlan(Shape(1, length, channels));
      EXPECT_EQ(one.kernel, kernels::ScanPlan::kLane);
      EXPECT_EQ(one.rows, 0);
      for (const int sequences : {2, 31, 512}) {
        EXPECT_EQ(DeterministicScanPlan(Shape(sequences, length, channels)),
                  one);
      }
    }
  }
  EXPECT_EQ(DeterministicScanPlan(Shape(1, 198, 160)), Lane(4));
  EXPECT_EQ(DeterministicScanPlan(Shape(1, 51, 320)), Lane(2));
  EXPECT_EQ(DeterministicScanPlan(Shape(1, 198, 66)), Lane(4));
  EXPECT_EQ(DeterministicScanPlan(Shape(1, 799, 640)), Lane(1));
  EXPECT_EQ(DeterministicScanPlan(Shape(1, 800, 640)), Lane(8));
  EXPECT_EQ(DeterministicScanPlan(Shape(1, 3138, 160)), Lane(8));
}

TEST(DeterministicScanPlanTest, CutsWalksOfOneStateByTheirLength) {
  for (const auto& [length, chunks] :
       {std::pair{49, 1}, {3136, 24}, {67200, 256}}) {
    for (const int sequences : {4, 512}) {
      ScanShape shape = Shape(sequences, length, /*channels=*/96);
      shape.states = 1;
      const kernels::ScanPlan plan = DeterministicScanPlan(shape);
      EXPECT_EQ(plan.kernel, kernels::ScanPlan::kChunk);
      EXPECT_EQ(plan.chunks, chunks);
    }
  }
}

// ---- The file ----

TEST(FoldTableFileTest, IsTheSpecifiedText) {
  EXPECT_EQ(SomeTable().Text(), kSomeText);
}

TEST(FoldTableFileTest, ComesBackWhole) {
  ScanPlanTable table = SomeTable();
  ScanShape ragged{ScanShape::kFloat16, 512, 16, 31, 3138, true};
  kernels::ScanPlan chunk;
  chunk.kernel = kernels::ScanPlan::kChunk;
  chunk.threads = 256;
  chunk.lanes = 2;
  chunk.chunks = 64;
  table.Set({ragged, chunk, 123.456});
  const auto copy = ScanPlanTable::Parse(table.Text());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->device(), kDevice);
  EXPECT_EQ(copy->Text(), table.Text());
  ASSERT_EQ(copy->entries().size(), 4);
  EXPECT_EQ(copy->entries()[3].plan, chunk);
  EXPECT_EQ(ToString(copy->entries()[3].shape), ToString(ragged));
  EXPECT_EQ(copy->entries()[3].microseconds, 123.456);
}

TEST(FoldTableFileTest, AnEmptyTableIsATable) {
  const auto table = ScanPlanTable::Parse(ScanPlanTable(kDevice).Text());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->entries().empty());
}

TEST(FoldTableFileTest, ErrorsNameTheLineWhatWasExpectedAndWhatWasFound) {
  EXPECT_EQ(ParseError(Changed("table 1", "table 2")),
            "line 1: format: expected \"sfmamba fold table 1\", got \"sfmamba "
            "fold table 2\"");
  EXPECT_EQ(ParseError(Changed("device NVIDIA H200", "device ")),
            "line 2: header: expected \"device <device>\", got \"device \"");
  EXPECT_EQ(ParseError(Changed("sors 132", "sors -1")),
            "line 3: multiprocessors: expected a whole number of at least 1, "
            "got \"-1\"");
  EXPECT_EQ(ParseError(Changed("build", "built")),
            "line 4: header: expected \"build <build>\", got \"built "
            "0123abcd\"");
  EXPECT_EQ(ParseError(Changed("uniform lane 0 4", "uniform lance 0 4")),
            "line 6: kernel: expected one of lane, fold, chunk, got \"lance\"");
  EXPECT_EQ(ParseError(Changed(" 15.400", "")),
            "line 6: entry: expected 14 columns, got \"13 columns\"");
  EXPECT_EQ(ParseError(Changed("lane 0 4", "lane 0 3")),
            "line 6: scan plan: lanes: got 3, expected 1 or 2 or 4 or 8");
  EXPECT_EQ(ParseError(Changed("1 32 0 0", "1 129 0 0")),
            "line 6: rows: expected a whole number from 0 to 128, got \"129\"");
  EXPECT_EQ(ParseError(Changed("4 7 0 6", "4 7 52 6")),
            "line 8: chunks: expected a whole number from 0 to 51, got \"52\"");
  EXPECT_EQ(ParseError(Changed("bf16 160 8 1 198", "bf16 160 8 120 200")),
            "line 7: entry: expected one for each power of two of a shape, got "
            "\"bf16 160 channels 8 states 120 x 200\"");
  EXPECT_EQ(ParseError(""), "expected a newline at the end, got \"\"");
  EXPECT_EQ(ParseError("sfmamba fold table 1\n"),
            "expected at least 5 lines, got 1");
}

TEST(FoldTableFileTest, NumbersAreWrittenOneWay) {
  for (const char* bad : {"+8", "08", "8.0", "0x8", "", "99999999",
                          "18446744073709551624", "8\t", "\xd9\xa8"}) {
    EXPECT_NE(ParseError(Changed("160 8 1 ", absl::StrCat("160 ", bad, " 1 "))),
              "OK")
        << bad;
  }
  for (const char* bad : {"nan", "inf", "-3.6", "0", "0.000", ".5", "3.6e1",
                          "1..2", "1e999", "9999999999", " 3.6"}) {
    EXPECT_NE(ParseError(Changed("3.600", bad)), "OK") << bad;
  }
}

TEST(FoldTableFileTest, HugeAndBinaryTextsAreRefused) {
  EXPECT_EQ(ParseError(std::string(1 << 24, '\n')),
            "expected at most 262144 bytes, got 16777216");
  EXPECT_EQ(ParseError(absl::StrCat(std::string("\0\x01\xff\n", 4))),
            "line 1: format: expected \"sfmamba fold table 1\", got "
            "\"\\x00\\x01\\xff\"");
  const std::string name(201, 'x');
  EXPECT_LT(ParseError(Changed("NVIDIA H200", name)).size(), 400);
}

// The mutations are the same in each run. The parser must refuse the mutated
// text, or return a table with exactly its contents.
TEST(FoldTableFileTest, NoMutantIsBelieved) {
  std::mt19937 random(7);
  const auto below = [&](int limit) {
    return std::uniform_int_distribution<int>(0, limit - 1)(random);
  };
  constexpr absl::string_view kBytes = "0189 .-\nabflx\xff";
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = kSomeText;
    for (int edits = 1 + below(3); edits > 0; --edits) {
      const int at = below(text.size());
      const char byte = kBytes[below(kBytes.size())];
      switch (below(3)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.erase(at, 1 + below(6));
      }
    }
    const auto table = ScanPlanTable::Parse(text);
    if (!table.ok()) {
      ASSERT_LT(table.status().message().size(), 700);
      continue;
    }
    ++accepted;
    for (const ScanPlanTable::Entry& entry : table->entries()) {
      ASSERT_EQ(table->Nearest(entry.shape), &entry);
      ASSERT_LE(entry.plan.rows, entry.shape.sequences);
    }
    const auto copy = ScanPlanTable::Parse(table->Text());
    ASSERT_TRUE(copy.ok()) << copy.status() << "\n" << text;
    ASSERT_EQ(copy->Text(), table->Text());
  }
  EXPECT_GT(accepted, 20);
  EXPECT_LT(accepted, 10000);
}

class FoldTableFolderTest : public testing::Test {
 protected:
  FoldTableFolderTest()
      : folder_(absl::StrCat(
            TempDir(), "/fold_table_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  ~FoldTableFolderTest() override { fs::remove_all(folder_); }

  int Files() const {
    return std::distance(fs::directory_iterator(folder_), {});
  }

  const fs::path folder_;
  const std::string path_ = folder_ / "h200.txt";
};

TEST_F(FoldTableFolderTest, IsWrittenWholeAndReadBack) {
  ASSERT_EQ(SomeTable().Write(path_), absl::OkStatus());
  EXPECT_EQ(Files(), 1);  // No temporary file is left.
  const auto table = ScanPlanTable::Read(path_);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Text(), kSomeText);
  ASSERT_EQ(ScanPlanTable(kDevice).Write(path_), absl::OkStatus());
  EXPECT_TRUE(ScanPlanTable::Read(path_)->entries().empty());
  EXPECT_EQ(Files(), 1);
}

TEST_F(FoldTableFolderTest, AFailedWriteLeavesTheFolderAsItWas) {
  fs::create_directories(path_ + "/in_the_way");
  EXPECT_FALSE(SomeTable().Write(path_).ok());
  EXPECT_EQ(Files(), 1);
  const absl::Status status = SomeTable().Write(folder_ / "none" / "x.txt");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
}

TEST_F(FoldTableFolderTest, ReadErrorsNameTheFile) {
  EXPECT_EQ(ScanPlanTable::Read(path_).status().code(),
            absl::StatusCode::kNotFound);
  std::ofstream(path_) << "nonsense\n";
  const absl::Status status = ScanPlanTable::Read(path_).status();
  EXPECT_EQ(status.message(),
            absl::StrCat(path_,
                         ": line 1: format: expected \"sfmamba fold "
                         "table 1\", got \"nonsense\""));
}

TEST_F(FoldTableFolderTest, AFolderIsNoTable) {
  EXPECT_FALSE(ScanPlanTable::Read(folder_).ok());
}

}  // namespace
}  // namespace sfmamba::tuning
