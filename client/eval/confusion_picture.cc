#include "client/eval/confusion_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/picture/lettering.h"
#include "opencv2/imgproc.hpp"

namespace sfmamba::client {
namespace {

constexpr int kCell = 28;  // Width and height of a cell, in pixels.
// In pixels. The letters have the size that Lettering chooses for a square
// picture with sides of this length.
constexpr int kLetters = 420;
const cv::Scalar kPaper(255, 255, 255), kGrid(200, 200, 200);

// The classes to draw and the texts of rows and columns. If `has_rest` is true,
// the last column counts answers with a class that is not drawn, or without a
// class.
struct Layout {
  std::vector<int> classes;
  std::vector<std::string> rows, columns;
  bool has_rest = false;
};

std::vector<int> ClassesToDraw(const Confusion& confusion) {
  std::vector<std::pair<int64_t, int>> by_mistakes;
  for (const auto& [number, counts] : confusion.Classes()) {
    by_mistakes.push_back(
        {-(counts.right + counts.answered - 2 * counts.both), number});
  }
  std::stable_sort(by_mistakes.begin(), by_mistakes.end());
  if (by_mistakes.size() > kMaxDrawnClasses) {
    by_mistakes.resize(kMaxDrawnClasses);
  }
  std::vector<int> classes;
  for (const auto& [mistakes, number] : by_mistakes) classes.push_back(number);
  std::sort(classes.begin(), classes.end());
  return classes;
}

Layout LayOut(const Confusion& confusion,
              const std::map<int, std::string>& labels) {
  Layout layout;
  layout.classes = ClassesToDraw(confusion);
  const std::map<int, Confusion::Counts> counts = confusion.Classes();
  for (const int number : layout.classes) {
    const auto label = labels.find(number);
    layout.rows.push_back(label == labels.end() ? absl::StrCat(number)
                                                : label->second);
    int64_t rest = counts.at(number).right;
    for (const int other : layout.classes) rest -= confusion.at(number, other);
    layout.has_rest |= rest > 0;
  }
  layout.columns = layout.rows;
  if (layout.has_rest) layout.columns.push_back("(other)");
  return layout;
}

int Widest(const Lettering& lettering, const std::vector<std::string>& texts) {
  int widest = kCell;
  for (const std::string& text : texts) {
    widest = std::max(widest, lettering.BoxSize(text).width);
  }
  return widest;
}

// Draws the texts below each other. Each text takes the height of a cell.
cv::Mat Names(const Lettering& lettering, const std::vector<std::string>& texts,
              int width) {
  cv::Mat names(kCell * texts.size(), width, CV_8UC3, kPaper);
  for (size_t i = 0; i < texts.size(); ++i) {
    const int above = (kCell - lettering.BoxSize(texts[i]).height) / 2;
    lettering.Write(texts[i], cv::Point(0, kCell * i + above), kPaper, &names);
  }
  return names;
}

void DrawCell(const Lettering& lettering, cv::Rect cell, double share,
              cv::Mat* canvas) {
  const cv::Scalar colour = kPaper - share * cv::Scalar(224, 163, 85);
  cv::rectangle(*canvas, cell, colour, cv::FILLED);
  cv::rectangle(*canvas, cell, kGrid);
  const int hundredths = std::lround(100 * share);
  if (hundredths == 0) return;
  const std::string text = absl::StrCat(hundredths);
  const cv::Size size = lettering.BoxSize(text);
  lettering.Write(text,
                  cell.tl() + cv::Point((cell.width - size.width) / 2,
                                        (cell.height - size.height) / 2),
                  colour, canvas);
}

}  // namespace

Picture DrawConfusion(const Confusion& confusion,
                      const std::map<int, std::string>& labels) {
  const Layout layout = LayOut(confusion, labels);
  const std::map<int, Confusion::Counts> counts = confusion.Classes();
  const Lettering lettering(cv::Size(kLetters, kLetters));
  const int left = Widest(lettering, layout.rows);
  const int top = Widest(lettering, layout.columns);
  const int rows = layout.rows.size(), columns = layout.columns.size();
  cv::Mat canvas(top + rows * kCell + 1, left + columns * kCell + 1, CV_8UC3,
                 kPaper);
  if (rows > 0) {
    Names(lettering, layout.rows, left)
        .copyTo(canvas(cv::Rect(0, top, left, rows * kCell)));
    cv::Mat upright;
    cv::rotate(Names(lettering, layout.columns, top), upright,
               cv::ROTATE_90_COUNTERCLOCKWISE);
    // This rotation moves the first name from the top to the left.
    upright.copyTo(canvas(cv::Rect(left, 0, columns * kCell, top)));
  }
  for (int i = 0; i < rows; ++i) {
    const int64_t all = counts.at(layout.classes[i]).right;
    int64_t rest = all;
    for (int j = 0; j < columns; ++j) {
      const int64_t count =
          j < rows ? confusion.at(layout.classes[i], layout.classes[j]) : rest;
      rest -= count;
      const cv::Rect cell(left + j * kCell, top + i * kCell, kCell + 1,
                          kCell + 1);
      DrawCell(lettering, cell, all == 0 ? 0 : 1.0 * count / all, &canvas);
    }
  }
  Picture picture;
  picture.width = canvas.cols;
  picture.height = canvas.rows;
  picture.data.assign(canvas.datastart, canvas.dataend);
  return picture;
}

}  // namespace sfmamba::client
