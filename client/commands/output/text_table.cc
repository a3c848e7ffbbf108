#include "client/commands/output/text_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"

namespace sfmamba::client {
namespace {

// Returns the number of code points, which it counts by their first bytes.
size_t Width(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace

TextTable::TextTable(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    right_aligned_.push_back(!heading.empty() && heading.front() == '>');
    if (right_aligned_.back()) heading.erase(0, 1);
  }
  rows_.push_back(std::move(headings));
}

void TextTable::AddRow(std::vector<std::string> cells) {
  cells.resize(right_aligned_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString() const {
  std::vector<size_t> widths(right_aligned_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - Width(row[i]), ' ');
      line += right_aligned_[i] ? padding + row[i] : row[i] + padding;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace sfmamba::client
