#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_TEXT_TABLE_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace sfmamba::client {

// Formats rows of text as a human-readable table with aligned columns.
class TextTable {
 public:
  // If a heading starts with '>', its column is aligned to the right.
  explicit TextTable(std::vector<std::string> headings);

  // Adds a row with one cell for each heading, in UTF-8.
  void AddRow(std::vector<std::string> cells);

  // Returns the headings and rows, one line each, with two spaces between
  // columns.
  std::string ToString() const;

 private:
  std::vector<bool> right_aligned_;
  // The first row has the headings.
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_TEXT_TABLE_H_
