#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_PROGRESS_BAR_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_PROGRESS_BAR_H_

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::client {

// Returns, for example, "[#####---------------]  25 %  note". `fraction` is
// clamped to 0..1.
std::string ProgressLine(double fraction, absl::string_view note);

// Shows the progress of a long run in one line of a terminal. The destructor
// erases the line.
class ProgressBar {
 public:
  // Writes nothing unless `enabled` is true. It should be true only if `out` is
  // a terminal.
  ProgressBar(std::ostream& out, bool enabled) : out_(out), enabled_(enabled) {}
  ~ProgressBar();

  void Show(double fraction, absl::string_view note);

 private:
  std::ostream& out_;
  const bool enabled_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_PROGRESS_BAR_H_
