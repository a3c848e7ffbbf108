#include "client/commands/output/progress_bar.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace sfmamba::client {
namespace {

constexpr int kCells = 20;
constexpr char kWipeLine[] = "\r\033[K";  // Carriage return, erase to the end.

}  // namespace

std::string ProgressLine(double fraction, absl::string_view note) {
  fraction = std::min(1.0, std::max(0.0, fraction));
  const int done = static_cast<int>(fraction * kCells);
  return absl::StrFormat("[%s%s] %3.0f %%  %s", std::string(done, '#'),
                         std::string(kCells - done, '-'), 100 * fraction, note);
}

ProgressBar::~ProgressBar() {
  if (enabled_) out_ << kWipeLine << std::flush;
}

void ProgressBar::Show(double fraction, absl::string_view note) {
  if (enabled_) out_ << kWipeLine << ProgressLine(fraction, note) << std::flush;
}

}  // namespace sfmamba::client
