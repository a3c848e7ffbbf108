#ifndef SFMAMBA_CLIENT_COMMANDS_OUTPUT_PROGRESS_BAR_H_
#define SFMAMBA_CLIENT_COMMANDS_OUTPUT_PROGRESS_BAR_H_

#include <ostream>
#include <string>

#include "absl/strings/string_view.h"

namespace sfmamba::client {

// "[#####---------------] 25 %  note"; `fraction` is cut to 0..1.
std::string ProgressLine(double fraction, absl::string_view note);

// One line of a terminal that tells how far a long run is; it is wiped in the
// end.
class ProgressBar {
 public:
  // Silent unless `enabled`, which should be false where `out` is no terminal.
  ProgressBar(std::ostream& out, bool enabled) : out_(out), enabled_(enabled) {}
  ~ProgressBar();

  void Show(double fraction, absl::string_view note);

 private:
  std::ostream& out_;
  const bool enabled_;
};

}  // namespace sfmamba::client

#endif  // SFMAMBA_CLIENT_COMMANDS_OUTPUT_PROGRESS_BAR_H_
