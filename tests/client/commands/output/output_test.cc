// Tests the classes that write JSON, tables and the progress bar.
#include <cmath>
#include <sstream>

#include "client/commands/output/json_writer.h"
#include "client/commands/output/progress_bar.h"
#include "client/commands/output/text_table.h"
#include "gtest/gtest.h"

namespace sfmamba::client {
namespace {

TEST(JsonWriterTest, SetsCommasAtEveryDepth) {
  JsonWriter json;
  json.BeginObject();
  json.Key("a").BeginArray().Integer(1).Number(0.5).Bool(true).EndArray();
  json.Key("b").BeginObject().EndObject();
  json.Key("c").BeginArray().BeginObject().Key("d").String("e").EndObject();
  json.BeginArray().EndArray().EndArray().EndObject();
  EXPECT_EQ(json.text(),
            R"({"a": [1, 0.5, true], "b": {}, "c": [{"d": "e"}, []]})");
}

TEST(JsonWriterTest, EscapesWhatMustBeEscaped) {
  JsonWriter json;
  json.String("\"\\\n\t\x01\x1f é");
  EXPECT_EQ(json.text(), "\"\\\"\\\\\\u000a\\u0009\\u0001\\u001f é\"");
}

TEST(JsonWriterTest, WhatIsNotFiniteIsNull) {
  JsonWriter json;
  json.BeginArray().Number(NAN).Number(INFINITY).EndArray();
  EXPECT_EQ(json.text(), "[null, null]");
}

TEST(TextTableTest, AlignsColumns) {
  TextTable table({"file", ">score", "label"});
  table.AddRow({"a.jpg", "0.5", "cup"});
  table.AddRow({"é", "10.25", ""});
  EXPECT_EQ(table.ToString(),
            "file   score  label\n"
            "a.jpg    0.5  cup\n"
            "é      10.25\n");
}

TEST(TextTableTest, MissingCellsAreEmpty) {
  TextTable table({"a", "b"});
  table.AddRow({"x"});
  EXPECT_EQ(table.ToString(), "a  b\nx\n");
}

TEST(ProgressBarTest, FillsFromLeftToRight) {
  EXPECT_EQ(ProgressLine(-1, "x"), "[--------------------]   0 %  x");
  EXPECT_EQ(ProgressLine(0.25, "x"), "[#####---------------]  25 %  x");
  EXPECT_EQ(ProgressLine(7, "x"), "[####################] 100 %  x");
}

TEST(ProgressBarTest, WritesNothingWhereThereIsNoTerminal) {
  std::ostringstream out;
  ProgressBar(out, false).Show(0.5, "x");
  EXPECT_EQ(out.str(), "");
}

TEST(ProgressBarTest, WipesItsLineInTheEnd) {
  std::ostringstream out;
  ProgressBar(out, true).Show(0.5, "x");
  EXPECT_EQ(out.str(), "\r\033[K[##########----------]  50 %  x\r\033[K");
}

}  // namespace
}  // namespace sfmamba::client
