#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_TEXT_TABLE_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace sfmamba::client {

// Rows of text in aligned columns, for people.
class TextTable {
 public:
  // A heading that starts with '>' is of a right-aligned column.
  explicit TextTable(std::vector<std::string> headings);

  // Takes one cell for each heading, in UTF-8.
  void AddRow(std::vector<std::string> cells);

  // Headings and rows, a line each, two spaces between columns.
  std::string ToString() const;

 private:
  std::vector<bool> right_aligned_;
  std::vector<std::vector<std::string>> rows_;  // The first are the headings.
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_TEXT_TABLE_H_
