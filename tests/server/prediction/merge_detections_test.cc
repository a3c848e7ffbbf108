#include "server/prediction/merge_detections.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/line_masks.h"

namespace sfmamba::prediction {
namespace {

using Row = std::vector<double>;  // x1, y1, x2, y2, score, class

std::vector<model::Detection> FromRows(const std::vector<Row>& rows) {
  std::vector<model::Detection> detections;
  for (const Row& row : rows) {
    model::Detection& one = detections.emplace_back();
    one.box = {static_cast<float>(row[0]), static_cast<float>(row[1]),
               static_cast<float>(row[2]), static_cast<float>(row[3])};
    one.score = row[4];
    one.class_id = row[5];
  }
  return detections;
}

std::vector<model::Detection> Merge(std::vector<model::Detection> detections,
                                    const MergeRule& rule) {
  DetectionMerger merger(std::move(detections), rule);
  while (!merger.done()) merger.MergeNext();
  return merger.Take();
}

// Sorts by all columns, because several rows may have the same score.
std::vector<Row> Sorted(std::vector<Row> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST(MergeDetectionsTest, ObjectsAreThoseOfSahi) {
  std::ifstream file("tests/server/prediction/testdata/sahi/sahi.json");
  const nlohmann::json recorded = nlohmann::json::parse(file);
  int compared = 0;
  for (const nlohmann::json& scene : recorded["scenes"]) {
    const auto detections = FromRows(scene["detections"]);
    for (const nlohmann::json& one : scene["merges"]) {
      MergeRule rule;
      rule.merge =
          one["merge"] == "NMS" ? v1::Tiles::NMS : v1::Tiles::GREEDY_NMM;
      rule.match = one["match"] == "IOU" ? v1::Tiles::IOU : v1::Tiles::IOS;
      rule.threshold = one["threshold"];
      rule.class_agnostic = one["agnostic"];
      rule.max_detections = 1000;
      std::vector<Row> objects;
      float score = 1;
      for (const model::Detection& object : Merge(detections, rule)) {
        EXPECT_LE(object.score, score);
        score = object.score;
        objects.push_back({object.box.x1, object.box.y1, object.box.x2,
                           object.box.y2, object.score, 1. * object.class_id});
      }
      objects = Sorted(objects);
      const std::vector<Row> expected = Sorted(one["objects"]);
      ASSERT_EQ(objects.size(), expected.size()) << one["merge"];
      for (size_t i = 0; i < objects.size(); ++i) {
        for (int k = 0; k < 6; ++k) {
          EXPECT_NEAR(objects[i][k], expected[i][k], 1e-3);
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

TEST(MergeDetectionsTest, TheBestAreKept) {
  std::vector<Row> rows;
  for (int i = 0; i < 10; ++i) {
    rows.push_back({100. * i, 0, 100. * i + 50, 50, 0.1 * (i + 1) - 0.05, 0});
  }
  MergeRule rule;
  rule.max_detections = 3;
  const std::vector<model::Detection> objects = Merge(FromRows(rows), rule);
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_FLOAT_EQ(objects[0].score, 0.95f);
  EXPECT_FLOAT_EQ(objects[2].score, 0.75f);
}

TEST(MergeDetectionsTest, BoxesWithoutAreaShareNothing) {
  const std::vector<Row> rows(5, Row{10, 10, 10, 10, 0.5, 0});
  EXPECT_EQ(Merge(FromRows(rows), MergeRule()).size(), 5u);
  MergeRule any;
  any.threshold = 0;
  EXPECT_EQ(Merge(FromRows(rows), any).size(), 1u) << "whatever they share";
}

base::Mask Full(int left, int top, int width, int height) {
  return {left, top, width, height, std::vector<uint8_t>(width * height, 1)};
}

TEST(MergeDetectionsTest, AMasksPixelsMoveWithItsBox) {
  base::Mask mask = Full(2, 3, 4, 5);
  // This is pixel (4, 4).
  mask.data[6] = 0;
  model::Detections detections;
  detections.detections.resize(1);
  detections.detections[0].mask = std::make_shared<PixelMask>(mask);
  Shift(100, 200, &detections);
  EXPECT_EQ(detections.detections[0].box.x1, 100);
  EXPECT_EQ(detections.detections[0].box.y2, 200);
  for (const base::Mask& moved :
       {PixelsOf(*detections.detections[0].mask),
        PixelsByColumns(*detections.detections[0].mask)}) {
    EXPECT_EQ(moved.left, 102);
    EXPECT_EQ(moved.top, 203);
    EXPECT_EQ(moved.data, mask.data);
  }
}

TEST(MergeDetectionsTest, BoxesMatchFromTheThresholdOn) {
  const std::vector<Row> rows = {{0, 0, 2, 2, 0.9, 0}, {1, 0, 3, 2, 0.8, 0}};
  MergeRule rule;
  rule.match = v1::Tiles::IOS;
  rule.threshold = 0.5f;  // Half of each box overlaps the other.
  EXPECT_EQ(Merge(FromRows(rows), rule).size(), 1u);
  rule.threshold = 0.51f;
  EXPECT_EQ(Merge(FromRows(rows), rule).size(), 2u);
}

TEST(MergeDetectionsTest, MasksGrowWithTheirBoxesOrAreDroppedWithThem) {
  std::vector<model::Detection> detections = FromRows(
      {{0, 0, 4, 4, 0.9, 0}, {1, 0, 5, 4, 0.8, 0}, {50, 0, 54, 4, 1, 0}});
  for (const int i : {0, 1}) {
    detections[i].mask = std::make_shared<PixelMask>(Full(i, 0, 4, 4));
  }
  MergeRule rule;
  const std::vector<model::Detection> kept = Merge(detections, rule);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].mask, nullptr);
  EXPECT_EQ(PixelsOf(*kept[1].mask).width, 4);
  rule.merge = v1::Tiles::GREEDY_NMM;
  const std::vector<model::Detection> grown = Merge(detections, rule);
  ASSERT_EQ(grown.size(), 2u);
  EXPECT_EQ(grown[0].mask, nullptr);
  const base::Mask mask = PixelsOf(*grown[1].mask);
  EXPECT_EQ(mask.left, 0);
  EXPECT_EQ(mask.width, 5);
  EXPECT_EQ(mask.data, std::vector<uint8_t>(5 * 4, 1));
}

TEST(MergeDetectionsTest, MasksThatTouchAreOneRun) {
  const auto together =
      UnionOf({std::make_shared<PixelMask>(Full(0, 0, 4, 2)),
               std::make_shared<PixelMask>(Full(4, 0, 3, 2))});
  base::LineRuns rows;
  together->AddRows(0, 2, &rows);
  ASSERT_EQ(rows.lines(), 2);
  EXPECT_EQ(rows.line(0), (std::vector<int>{0, 7}));
}

TEST(MergeDetectionsTest, MasksApartAreRunsFromLeftToRight) {
  const auto together =
      UnionOf({std::make_shared<PixelMask>(Full(10, 0, 2, 1)),
               std::make_shared<PixelMask>(Full(0, 0, 3, 1))});
  base::LineRuns rows;
  together->AddRows(0, 1, &rows);
  EXPECT_EQ(rows.line(0), (std::vector<int>{0, 3, 10, 12}));
}

TEST(MergeDetectionsTest, AnObjectsMaskIsTheUnionOfAllThatMatch) {
  const std::vector<base::Mask> masks = {Full(0, 0, 10, 10), Full(8, 2, 6, 4),
                                         Full(4, 5, 4, 8)};
  std::vector<std::shared_ptr<const model::InstanceMask>> parts;
  for (const base::Mask& mask : masks) {
    parts.push_back(std::make_shared<PixelMask>(mask));
  }
  const auto together = UnionOf(parts);
  EXPECT_EQ(together->bounds().width, 14);
  EXPECT_EQ(together->bounds().height, 13);
  const base::Mask rows = PixelsOf(*together);
  const base::Mask columns = PixelsByColumns(*together);
  for (int y = 0; y < 13; ++y) {
    for (int x = 0; x < 14; ++x) {
      const bool set =
          masks[0].At(x, y) || masks[1].At(x, y) || masks[2].At(x, y);
      EXPECT_EQ(rows.At(x, y), set) << x << ", " << y;
      EXPECT_EQ(columns.At(x, y), set) << x << ", " << y;
    }
  }
  base::LineRuns some;
  together->AddRows(3, 5, &some);
  ASSERT_EQ(some.lines(), 2);
  EXPECT_EQ(some.line(0), (std::vector<int>{0, 14})) << "row 3";
}

}  // namespace
}  // namespace sfmamba::prediction
